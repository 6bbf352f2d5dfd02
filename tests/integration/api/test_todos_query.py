"""The Query Framework over "my AI todos", and what OpenAPI and forms say of filters."""

from __future__ import annotations

from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from sqlalchemy import insert, select

from staging.storage.search import SORTABLE
from staging.storage.tables import op_queue
from tests.support.api import AGENT, OPERATOR, PERSON, Caller, Door
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier, word

PATH = "/v1/todos/query"


def asked(caller: Caller, **filter_: Any) -> dict[str, str]:
    """id → group, in the order answered."""
    found = caller.post(PATH, {"filter": filter_, "page": {"size": 200}})
    return {item["id"]: item["group"] for item in found["items"]}


@pytest.fixture(scope="module")
def mine(door: Door) -> dict[str, str]:
    """Operations of one conversation by what they are."""
    name, chen = word(), door.as_("u-chen").post
    supplier = chen("/v1/forms/supplier/query", {"filter": {"invalid": False}})["items"][0]["id"]
    product = chen("/v1/forms/product/query", {"filter": {"invalid": False}})["items"][0]["id"]
    done = door.stage("u-zhao", **new_customer(), conversationId=name)["id"]
    door.execute(done)
    return {
        "conversation": name,
        "done": done,
        "by_hand": door.stage("u-zhao", **new_outsource_order(supplier, product), conversationId=name)["id"],
        "due": door.stage("u-zhao", **new_customer(), conversationId=name)["id"],
        "theirs": door.stage("u-chen", **new_supplier(), conversationId=name)["id"],
    }


def test_what_waits_comes_first_then_what_runs_then_what_ended(door: Door, mine: dict[str, str]) -> None:
    found = asked(door.as_("u-zhao"), conversationId=mine["conversation"])
    assert found == {
        mine["theirs"]: "waiting",  # somebody else's, which u-zhao may approve
        mine["by_hand"]: "waiting",
        mine["due"]: "running",
        mine["done"]: "recent",
    }
    assert list(found.values()) == ["waiting", "waiting", "running", "recent"]


def test_each_filter_restricts(door: Door, mine: dict[str, str]) -> None:
    conversation = mine["conversation"]

    def found(**filter_: Any) -> set[str]:
        ids = asked(door.as_("u-zhao"), conversationId=conversation, **filter_)
        return {name for name, op_id in mine.items() if op_id in ids}

    assert found(group=["waiting"]) == {"by_hand", "theirs"}
    assert found(group=["running", "recent"]) == {"due", "done"}
    assert found(formId=["customer"]) == {"due", "done"}
    assert found(code=[103, 200]) == {"by_hand", "done"}
    assert found(opType=["examine"]) == set()
    assert found(createdFrom="2999-01-01T00:00:00Z") == set()


def test_an_approval_waits_only_for_a_person_who_may_approve_it(door: Door, mine: dict[str, str]) -> None:
    conversation, theirs = mine["conversation"], mine["theirs"]
    assert theirs in asked(door.as_("u-qian"), conversationId=conversation)
    assert asked(door.as_("u-chen"), conversationId=conversation) == {theirs: "running"}
    for user, kind in (("u-sun", PERSON), ("u-zhao", AGENT), ("ops", OPERATOR)):
        assert theirs not in asked(door.as_(user, kind), conversationId=conversation)


def test_what_one_may_not_approve_does_not_crowd_out_what_one_may(door: Door, mine: dict[str, str]) -> None:
    """More operations for other approvers, and older ones, than a list of todos holds."""
    with door.services.databases.store.read() as connection:
        row = connection.execute(select(op_queue).where(op_queue.c.sId == mine["theirs"])).one()._asdict()
    foreign = {**row, "sTargetFormId": "purchase_requisition", "sCommandType": "", "sIdempotencyKey": None}
    foreign["tCreateDate"] = row["tCreateDate"].replace(year=2020)
    rows = [{**foreign, "sId": f"crowd-{word()[2:]}-{n}", "sMakePerson": "u-wang"} for n in range(101)]
    with door.services.databases.store.begin() as unit:
        unit.connection.execute(insert(op_queue), rows)
        unit.commit()
    waiting = [o["id"] for o in door.as_("u-qian").get("/v1/todos", params={"limit": 100})["waiting"]]
    assert mine["theirs"] in waiting
    assert not [op_id for op_id in waiting if op_id.startswith("crowd-")]


@pytest.mark.parametrize(
    ("filter_", "bad"),
    [
        ({"group": ["all"], "code": [1000], "user": ["u-lin"]}, {"group[0]", "code[0]", "user"}),
        ({"createdFrom": "2026-11-30", "createdTo": "yesterday"}, {"createdFrom", "createdTo"}),
        ({"formId": "customer", "opType": [1]}, {"formId", "opType[0]"}),
        ({"code": [2**63, "1e400", 0.30000000000000004]}, {"code[0]", "code[1]", "code[2]"}),
    ],
    ids=["unknown", "times", "types", "numbers"],
)
def test_every_bad_field_is_told_at_once_in_either_language(
    door: Door, filter_: dict[str, Any], bad: set[str]
) -> None:
    for locale in ("en", "zh"):
        headers = {"Accept-Language": locale}
        response = door.as_("u-zhao").http.post(PATH, json={"filter": filter_}, headers=headers)
        assert response.status_code == 422
        details = response.json()["error"]["details"]
        assert {d["field"].removeprefix("filter.") for d in details} == bad
        chinese = [any("\u4e00" <= c <= "\u9fff" for c in d["message"]) for d in details]
        assert set(chinese) == {locale == "zh"}


def test_openapi_shows_typed_filters_and_sort_fields(door: Door) -> None:
    schemas = httpx.get(f"{door.url}/openapi.json").json()["components"]["schemas"]
    assert {"status", "code", "formId", "user", "createdFrom"} <= set(
        schemas["OperationFilter"]["properties"]
    )
    assert schemas["OperationFilter"]["additionalProperties"] is False
    assert set(schemas["OperationSort"]["properties"]["field"]["enum"]) == {*SORTABLE, "id"}
    assert set(schemas["TodoSort"]["properties"]["field"]["enum"]) == {*SORTABLE, "id", "group"}
    assert schemas["TodoFilter"]["properties"]["group"]["items"]["enum"] == ["waiting", "running", "recent"]


def test_a_form_says_what_may_be_filtered_and_sorted_and_how(door: Door) -> None:
    schema = door.as_("u-lin", AGENT).get("/v1/forms/customer")
    jsonschema.validate(
        {"name": {"contains": "文具"}, "creditLimit": {"from": "10000"}, "type": ["direct"], "city": None},
        schema["filterSchema"],
    )
    zh = door.as_("u-lin").get("/v1/forms/customer", headers={"Accept-Language": "zh"})["filterSchema"]
    assert zh["properties"]["name"]["title"] == "客户名称"
    assert "包含该文字" in zh["$defs"]["String"]["description"]
    assert schema["sortable"][-1] == "id"
    assert schema["defaultSort"] == [{"field": "createdAt", "direction": "DESC"}]
    found = door.as_("u-lin").post("/v1/forms/customer/query", {})
    assert found["appliedSort"][0] == schema["defaultSort"][0]
