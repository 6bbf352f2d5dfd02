"""The description of the API is valid, complete, and true of what is answered."""

from __future__ import annotations

from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from openapi_spec_validator import validate

from staging.contracts.error import ErrorCode
from tests.support.api import AGENT, Door
from tests.support.demo_requests import new_customer


@pytest.fixture(scope="module")
def spec(door: Door) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{door.url}/openapi.json").json()
    return found


def calls(spec: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(m, path, call) for path, methods in spec["paths"].items() for m, call in methods.items()]


def resolved(schema: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with the components it refers to."""
    return {**schema, "components": spec["components"]}


def test_it_is_valid(spec: dict[str, Any]) -> None:
    validate(spec)
    assert spec["openapi"].startswith("3.1")


def test_every_call_has_a_name_a_summary_and_the_error_model(spec: dict[str, Any]) -> None:
    names = [call["operationId"] for _, _, call in calls(spec)]
    assert len(set(names)) == len(names)
    for method, path, call in calls(spec):
        assert call["description"], path
        if not path.startswith("/v1/"):
            continue
        assert call["security"] == [{"HTTPBearer": []}], (method, path)
        for status in ("400", "401", "403", "404", "409", "422", "429", "500", "503"):
            schema = call["responses"][status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorResponse"}, (path, status)
    assert set(spec["components"]["schemas"]["ErrorCode"]["enum"]) == set(ErrorCode)


def test_no_call_takes_a_user_or_a_tenant(spec: dict[str, Any]) -> None:
    """Neither in its address nor in its body; only answers and filters name makers."""
    asked = {"userId", "brandsId", "subsidiaryId", "user_id", "tenant", "maker"}
    for _, path, call in calls(spec):
        assert not asked & {p["name"] for p in call.get("parameters", [])}, path
        body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        for option in body.get("anyOf", [body]):
            name = option.get("$ref", "").rpartition("/")[2]
            properties = spec["components"]["schemas"].get(name, {}).get("properties", {})
            assert not asked & set(properties), (path, name)


def test_examples_are_valid_and_work(spec: dict[str, Any], door: Door) -> None:
    examples = 0
    for _, path, call in calls(spec):
        media = call.get("requestBody", {}).get("content", {}).get("application/json", {})
        for example in media.get("schema", {}).get("examples", []):
            examples += 1
            jsonschema.validate(example, resolved(media["schema"], spec))
            if path.endswith("/query"):
                where = path.replace("{form_id}", "customer")
                door.as_("u-lin").post(where, example)
    assert examples >= 5
    one, _ = spec["paths"]["/v1/preparations"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]["examples"]
    assert door.as_("u-lin", AGENT).post("/v1/preparations", one)["state"] == "PREPARED"


def test_answers_are_as_described(spec: dict[str, Any], door: Door) -> None:
    person = door.as_("u-lin")
    prepared = person.post("/v1/preparations", new_customer())
    operation = door.run("u-lin", **new_customer())
    path = f"/v1/operations/{operation['id']}"
    answers = {
        ("post", "/v1/preparations"): prepared,
        ("get", "/v1/me"): person.get("/v1/me"),
        ("get", "/v1/todos"): person.get("/v1/todos"),
        ("get", "/v1/operations/{op_id}"): operation,
        ("get", "/v1/operations/{op_id}/status"): person.get(f"{path}/status"),
        ("get", "/v1/operations/{op_id}/journal"): person.get(f"{path}/journal"),
        ("post", "/v1/operations/query"): person.post("/v1/operations/query", {}),
        ("get", "/v1/forms"): person.get("/v1/forms"),
        ("get", "/v1/forms/{form_id}"): person.get("/v1/forms/sales_order"),
        ("get", "/v1/forms/{form_id}/records/{record}"): person.get("/v1/forms/customer/records/KH0001"),
        ("post", "/v1/todos/query"): person.post("/v1/todos/query", {}),
        ("post", "/v1/forms/{form_id}/query"): person.post("/v1/forms/customer/query", {}),
    }
    for (method, route), answer in answers.items():
        schema = spec["paths"][route][method]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer, resolved(schema, spec))
