"""Every call of the OpenAPI document, with requests made from the document itself, valid and not, by every kind of
credential: no error of ours, and each answer is one that the document promises (Schemathesis)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from staging.api.app import create_app
from staging.domain.identity import ActorKind
from staging.settings import Settings
from tests.support.api import B002, KINDS, Door
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier

EXAMPLES = max(2, int(os.environ.get("OPSTAGE_FUZZ_EXAMPLES", "40")) // 20)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
STREAM = "text/event-stream"
HOP_BY_HOP = {
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""The server's business, not the API's."""
USER = "u-gao"  # of the other company: what is left lying about here is in nobody else's lists
DOCUMENT = schemathesis.openapi.from_dict(create_app(Settings(_env_file=None)).openapi())
Call: TypeAlias = "APIOperation[Any, Any, Any, Any]"
Request: TypeAlias = "Case[Any]"
CALLS: list[Call] = [result.ok() for result in DOCUMENT.get_all_operations() if isinstance(result, Ok)]
assert len(CALLS) > 25
pytestmark = pytest.mark.parametrize("door", ["postgresql"], indirect=True)


@pytest.fixture(scope="module")
def known(door: Door) -> Mapping[str, list[str]]:
    """Values of path parameters that lead somewhere."""
    person = door.as_(USER, tenant=B002)

    def first(form: str) -> str:
        query = {"filter": {"invalid": False}, "page": {"size": 1}}
        return str(person.post(f"/v1/forms/{form}/query", query)["items"][0]["id"])

    done = door.stage(USER, B002, **new_customer())
    door.execute(done["id"])
    order = new_outsource_order(first("supplier"), first("product"))
    staged = [door.stage(USER, B002, **one) for one in (order, new_supplier(), new_customer())]
    fresh = [door.prepare(USER, B002, **new_customer())["preparationId"] for _ in range(3)]
    return {
        "op_id": [done["id"], *(operation["id"] for operation in staged)],
        "preparation_id": [done["preparationId"], *fresh],
        "form_id": ["customer", "quotation", "sales_order"],
        "field": ["type", "customer", "lines.product"],
        "record": [first("customer"), "KH0001"],
        "name": ["orders", "quote"],
    }


@pytest.fixture(scope="module")
def http() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.label)
def test_answers_are_as_promised(
    call: Call, door: Door, known: Mapping[str, list[str]], http: requests.Session
) -> None:
    modes = [call.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(
        max_examples=EXAMPLES * len(KINDS),
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(modes), kind=st.sampled_from(KINDS), data=st.data())
    def ask(case: Request, kind: ActorKind, data: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            if data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(st.sampled_from(known[name]))
        if "wait" in (case.query or {}):  # seconds
            case.query["wait"] = min(case.query["wait"], 0.1) if _is_number(case.query["wait"]) else "soon"
        for name in HOP_BY_HOP & {n.lower() for n in case.headers or {}}:
            case.headers.pop(next(n for n in case.headers if n.lower() == name))
        _ask(case, door.as_(USER, kind, B002).token, door.url, http)

    ask()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ask(case: Request, token: str, url: str, http: requests.Session) -> None:
    request = case.as_transport_kwargs(base_url=url, headers={"Authorization": f"Bearer {token}"})
    with http.request(**request, stream=True, timeout=30) as answer:
        if answer.headers.get("content-type", "").startswith(STREAM):
            assert answer.status_code == 200
            assert STREAM in case.operation.definition.raw["responses"]["200"]["content"]
            return  # it would never end
        answer.content  # noqa: B018  the whole of it, before the connection goes back
        case.validate_response(answer, checks=CHECKS)
