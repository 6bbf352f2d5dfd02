"""Every route × every kind of credential × own, somebody else's and missing ids.

The routes come from the route table: a new one fails here until it says who may call it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from staging.api.app import create_app
from staging.contracts.error import ErrorCode
from staging.domain.identity import ActorKind, new_id
from staging.settings import Settings
from staging.storage.tables import op_queue
from tests.support.api import AGENT, B002, KINDS, OPERATOR, PERSON, SERVICE, Caller, Door
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier

ANYBODY = frozenset(KINDS)
USER_OF = {AGENT: "u-chen", PERSON: "u-chen", SERVICE: "erp", OPERATOR: "ops"}
# operationId → kinds of credential that may call it at all.
MAY: dict[str, frozenset[ActorKind]] = {
    **dict.fromkeys(
        ("getMe", "findForms", "getForm", "getFieldOptions", "queryRecords", "getRecord"), ANYBODY
    ),
    **dict.fromkeys(("findQueries", "runQuery"), ANYBODY),
    "prepare": frozenset({AGENT, PERSON}),
    "getPreparation": ANYBODY,
    "dropPreparation": ANYBODY,
    "confirmPreparation": frozenset({PERSON}),
    **dict.fromkeys(("queryOperations", "getOperation", "getTodos", "queryTodos", "streamEvents"), ANYBODY),
    **dict.fromkeys(("getOperationStatus", "getOperationJournal", "streamOperationEvents"), ANYBODY),
    "getOperationPrefill": ANYBODY,
    "cancelOperation": frozenset({AGENT, PERSON, OPERATOR}),
    "retryOperation": frozenset({PERSON, OPERATOR}),
    "approveOperation": frozenset({PERSON}),
    "rejectOperation": frozenset({PERSON}),
    "completeOperation": frozenset({PERSON, SERVICE}),
    **dict.fromkeys(
        ("revertOperation", "restageOperation", "restagePreparation"), frozenset({AGENT, PERSON})
    ),
}
I10 = ("confirmPreparation", "approveOperation", "rejectOperation", "completeOperation", "retryOperation")
BODIES: dict[str, dict[str, Any]] = {
    "completeOperation": {"resultBillId": "W-1"},
    "queryOperations": {},
    "queryRecords": {},
    "queryTodos": {},
    "runQuery": {},
    "prepare": {"formId": "nothing", "opType": "create"},
}
# An operation of whose it can be asked is at this code; elsewhere any will do.
MAKE: dict[str, str] = {
    "retryOperation": "broken",
    "restageOperation": "broken",
    "approveOperation": "supplier",
    "rejectOperation": "supplier",
    "completeOperation": "outsource",
    "getOperationPrefill": "outsource",
    "revertOperation": "done",
}


@dataclass(frozen=True)
class Route:
    operation_id: str
    method: str
    path: str

    def __str__(self) -> str:
        return self.operation_id


def routes() -> list[Route]:
    found = []
    for path, methods in create_app(Settings(_env_file=None)).openapi()["paths"].items():
        found += [Route(call["operationId"], method.upper(), path) for method, call in methods.items()]
    return [route for route in found if route.path.startswith("/v1/")]


ROUTES = routes()
OF_OPERATIONS = [r for r in ROUTES if "{op_id}" in r.path]
OF_PREPARATIONS = [r for r in ROUTES if "{preparation_id}" in r.path]
OTHERS = [r for r in ROUTES if "{op_id}" not in r.path and "{preparation_id}" not in r.path]


def call(caller: Caller | httpx.Client, route: Route, **path: str) -> httpx.Response:
    """The answer; of a stream the head only."""
    names = {"form_id": "customer", "field": "type", "record": "KH0001", "name": "orders", **path}
    address = route.path.format(**names)
    body = BODIES.get(route.operation_id)
    http = caller.http if isinstance(caller, Caller) else caller
    with http.stream(route.method, address, json=body) as response:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        response.read()
        return response


class Stock:
    """Operations and preparations of a user of either tenant, made as they are asked for."""

    def __init__(self, door: Door) -> None:
        self.door = door
        query = door.as_("u-chen").post
        self.supplier = query("/v1/forms/supplier/query", {"filter": {"invalid": False}})["items"][0]["id"]
        self.product = query("/v1/forms/product/query", {"filter": {"invalid": False}})["items"][0]["id"]

    def operation(self, what: str, user: str) -> str:
        """At 100 (any other ``what``), 103 "outsource", 104 "supplier", 200 "done", 500 "broken"."""
        if what == "outsource":
            made = self.door.stage(user, **new_outsource_order(self.supplier, self.product))
        else:
            made = self.door.stage(user, **new_supplier())
        op_id = str(made["id"])
        code = {"outsource": 103, "supplier": 104}.get(what)
        if code is None:
            status, code = {"done": ("success", 200), "broken": ("fail", 500)}.get(what, ("pending", 100))
            self.force(op_id, sStatus=status, iStatusCode=code, sResultBillId="W-1")
        return op_id

    def force(self, op_id: str, **columns: Any) -> None:
        engine = self.door.services.databases.store.engine
        with engine.begin() as connection:
            connection.execute(update(op_queue).where(op_queue.c.sId == op_id).values(columns))

    def of_other_user(self, what: str) -> str:
        """u-zhao may do everything in the same company."""
        return self.operation(what, "u-zhao")

    def of_other_tenant(self) -> str:
        return str(self.door.stage("u-gao", B002, **new_customer())["id"])


@pytest.fixture(scope="module")
def stock(door: Door) -> Stock:
    return Stock(door)


@pytest.fixture
def caller_of(door: Door) -> Callable[[ActorKind], Caller]:
    return lambda kind: door.as_(USER_OF[kind], kind)


def assert_refused(response: httpx.Response, status: int, code: ErrorCode) -> dict[str, Any]:
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    assert body["error"]["hint"]
    return body


def test_each_route_says_who_may_call_it() -> None:
    assert {route.operation_id for route in ROUTES} == set(MAY)
    assert len({route.operation_id for route in ROUTES}) == len(ROUTES)
    for name in I10:
        assert AGENT not in MAY[name]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", OF_OPERATIONS, ids=str)
def test_operations(
    route: Route, kind: ActorKind, stock: Stock, caller_of: Callable[[ActorKind], Caller]
) -> None:
    caller = caller_of(kind)
    what = MAKE.get(route.operation_id, "")
    own, colleague = stock.operation(what, "u-chen"), stock.of_other_user(what)
    elsewhere, missing = stock.of_other_tenant(), new_id()
    if kind not in MAY[route.operation_id]:
        refusals = [
            assert_refused(call(caller, route, op_id=i), 403, ErrorCode.FORBIDDEN)
            for i in (own, colleague, elsewhere, missing)
        ]
        assert all(one == refusals[0] for one in refusals)
        return
    absent = assert_refused(call(caller, route, op_id=missing), 404, ErrorCode.OPERATION_NOT_FOUND)
    assert assert_refused(call(caller, route, op_id=elsewhere), 404, ErrorCode.OPERATION_NOT_FOUND) == absent
    theirs = call(caller, route, op_id=colleague)
    if kind in (OPERATOR, SERVICE):
        assert theirs.status_code == 200
    else:
        assert assert_refused(theirs, 404, ErrorCode.OPERATION_NOT_FOUND) == absent
    mine = call(caller, route, op_id=own)
    if route.operation_id in ("approveOperation", "rejectOperation"):
        assert_refused(mine, 403, ErrorCode.FORBIDDEN)  # never by the one who made it
    elif route.operation_id == "revertOperation":
        assert_refused(mine, 404, ErrorCode.RECORD_NOT_FOUND)  # it was only said to be executed
    else:
        assert mine.status_code == 200, mine.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", OF_PREPARATIONS, ids=str)
def test_preparations(
    route: Route, kind: ActorKind, door: Door, caller_of: Callable[[ActorKind], Caller]
) -> None:
    caller = caller_of(kind)
    own = door.prepare("u-chen", **new_supplier())["preparationId"]
    colleague = door.prepare("u-zhao", **new_supplier())["preparationId"]
    elsewhere = door.prepare("u-gao", B002, **new_customer())["preparationId"]
    if kind not in MAY[route.operation_id]:
        for one in (own, colleague, elsewhere, new_id()):
            assert_refused(call(caller, route, preparation_id=one), 403, ErrorCode.FORBIDDEN)
        return
    code = ErrorCode.PREPARATION_NOT_FOUND_OR_EXPIRED
    absent = assert_refused(call(caller, route, preparation_id=new_id()), 404, code)
    for other in (colleague, elsewhere):
        assert assert_refused(call(caller, route, preparation_id=other), 404, code) == absent
    mine = call(caller, route, preparation_id=own)
    if kind in (AGENT, PERSON):
        assert mine.is_success, mine.text
    else:
        assert assert_refused(mine, 404, code) == absent


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", OTHERS, ids=str)
def test_the_rest(route: Route, kind: ActorKind, caller_of: Callable[[ActorKind], Caller]) -> None:
    response = call(caller_of(kind), route)
    if kind not in MAY[route.operation_id]:
        assert_refused(response, 403, ErrorCode.FORBIDDEN)
    elif route.operation_id == "prepare":
        assert_refused(response, 404, ErrorCode.FORM_NOT_FOUND)
    elif kind is OPERATOR and route.operation_id == "getForm":
        assert response.json()["opTypes"] == []  # labels for the queue, which shows them every payload anyway
    elif ("{form_id}" in route.path or "{name}" in route.path) and kind in (SERVICE, OPERATOR):
        assert_refused(response, 403, ErrorCode.FORBIDDEN)  # the ERP grants them nothing
    else:
        assert response.status_code == 200, response.text


def test_records_of_another_tenant_are_as_missing(door: Door) -> None:
    there = door.as_("u-gao", PERSON, B002).post("/v1/forms/customer/query", {})["items"][0]["id"]
    here = door.as_("u-lin")

    def answer(record: str) -> str:
        return here.http.get(f"/v1/forms/customer/records/{record}").text.replace(record, "…")

    assert answer(there) == answer("B002-cus-9999")
    assert here.get(f"/v1/forms/customer/records/{there}", expect=404)["error"]["code"] == "record_not_found"
    mine = here.post("/v1/forms/customer/query", {"filter": {"id": there}})
    assert mine["items"] == []
    assert mine["page"]["total"] == 0


@pytest.mark.parametrize("kind", [AGENT, PERSON])
def test_lists_hold_ones_own_only(kind: ActorKind, door: Door, stock: Stock) -> None:
    mine, colleagues = stock.operation("", "u-chen"), stock.of_other_user("")
    for filter_ in ({}, {"user": ["u-zhao", "u-chen"]}, {"user": ["u-zhao"]}):
        found = door.as_("u-chen", kind).post(
            "/v1/operations/query", {"filter": filter_, "page": {"size": 200}}
        )
        assert {item["maker"] for item in found["items"]} == {"u-chen"}
        ids = {item["id"] for item in found["items"]}
        assert mine in ids
        assert colleagues not in ids


def test_an_operator_sees_the_tenant_and_no_other(door: Door, stock: Stock) -> None:
    here, there = stock.of_other_user(""), stock.of_other_tenant()
    found = door.as_("ops", OPERATOR).post("/v1/operations/query", {"page": {"size": 200}})
    ids = {item["id"] for item in found["items"]}
    assert here in ids
    assert there not in ids


def test_another_users_conversation_shows_nothing(door: Door) -> None:
    secret = new_id()
    door.stage("u-zhao", **new_supplier(), conversationId=secret)
    asked = {"filter": {"conversationId": secret}}
    assert door.as_("u-chen", AGENT).post("/v1/operations/query", asked)["items"] == []
    assert len(door.as_("u-zhao", AGENT).post("/v1/operations/query", asked)["items"]) == 1


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_route_opens_without_a_valid_credential(route: Route, door: Door) -> None:
    expired = door.token("u-chen", ttl_s=-1)
    sent = ["", "Bearer", "Bearer nonsense", f"Bearer ops_{'x' * 43}", "Basic dTpw", f"Bearer {expired}"]
    for header in sent:
        headers = {"Authorization": header} if header else {}
        with httpx.Client(base_url=door.url, headers=headers, timeout=20) as client:
            response = call(client, route, op_id="x", preparation_id="x")
        assert_refused(response, 401, ErrorCode.UNAUTHENTICATED)
        assert response.headers["www-authenticate"] == "Bearer"
