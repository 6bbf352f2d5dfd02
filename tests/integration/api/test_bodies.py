"""What a request may hold: exact JSON within limits, known fields, and never a word about who is asking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.api import AGENT, PERSON, Door
from tests.support.demo_requests import new_customer, word
from tests.support.hostile_json import REFUSED

JSON = {"Content-Type": "application/json"}
# What programs call a user, a tenant or a role: none of it is ever taken from a request.
IDENTITY = (
    "userId", "user", "user_id", "sMakePerson", "maker", "makePerson", "actor", "actorKind", "kind", "role",
    "tenant", "tenantId", "brandsId", "brands", "sBrandsId", "brands_id", "subsidiaryId", "subsidiary",
    "sSubsidiaryId", "confirmedBy", "approvedBy", "onBehalfOf", "impersonate", "status", "iStatusCode", "sStatus",
    "idempotencyKey", "autoExecute", "bAutoExecute", "requiresApproval",
)  # fmt: skip
WITH_BODY: dict[str, dict[str, Any]] = {
    "/v1/preparations": {"formId": "customer", "opType": "create"},
    "/v1/preparations/{p}/confirm": {},
    "/v1/operations/query": {},
    "/v1/operations/{o}/cancel": {},
    "/v1/operations/{o}/retry": {},
    "/v1/operations/{o}/approve": {},
    "/v1/operations/{o}/reject": {},
    "/v1/operations/{o}/complete": {"resultBillId": "W-1"},
    "/v1/operations/{o}/revert": {},
    "/v1/forms/customer/query": {},
}


@pytest.fixture(scope="module")
def places(door: Door) -> dict[str, str]:
    """Path template → a path of u-lin's own."""
    operation = door.stage("u-lin", **new_customer())["id"]
    preparation = door.prepare("u-lin", **new_customer())["preparationId"]
    return {path: path.format(o=operation, p=preparation) for path in WITH_BODY}


def send(door: Door, path: str, content: bytes, **headers: str) -> httpx.Response:
    return door.as_("u-lin").http.post(path, content=content, headers={**JSON, **headers})


@pytest.mark.parametrize("path", WITH_BODY)
def test_an_identity_field_is_refused_everywhere(path: str, door: Door, places: dict[str, str]) -> None:
    for name in IDENTITY:
        body = {**WITH_BODY[path], name: "u-zhao"}
        answer = door.as_("u-lin").post(places[path], body, expect=422)["error"]
        assert (answer["code"], [d["field"] for d in answer["details"]]) == ("field_unknown", [name])


@pytest.mark.parametrize("name", IDENTITY)
def test_an_identity_field_is_refused_inside_too(name: str, door: Door) -> None:
    """In an item, in a payload, in a filter, in the edits of a confirm."""
    person, agent = door.as_("u-lin"), door.as_("u-lin", AGENT)
    item = {**new_customer(), name: "u-zhao"}
    answer = agent.post("/v1/preparations", {"items": [item]}, expect=422)["error"]
    assert [d["field"] for d in answer["details"]] == [f"items[0].{name}"]
    expected = {"field_unknown", "field_not_writable"}
    request = new_customer(**{name: "u-zhao"})
    assert agent.post("/v1/preparations", request, expect=422)["error"]["code"] in expected
    prepared = door.prepare("u-lin", **new_customer())["preparationId"]
    answer = person.post(f"/v1/preparations/{prepared}/confirm", {"edits": {name: "u-zhao"}}, expect=422)
    assert answer["error"]["code"] in expected
    if name not in ("user", "status"):
        answer = person.post("/v1/operations/query", {"filter": {name: ["u-zhao"]}}, expect=422)
        assert answer["error"]["code"] == "field_unknown"


@pytest.mark.parametrize("name", [*IDENTITY, "access_token", "token", "wait", "x"])
def test_a_parameter_that_is_not_known_is_refused(name: str, door: Door) -> None:
    answer = door.as_("u-lin").get("/v1/todos", expect=422, params={name: "1"})["error"]
    assert answer["details"][0]["field"] == name


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_exact_json_is_refused(name: str, door: Door) -> None:
    text, _ = REFUSED[name]
    raw = (
        b"null"
        if text is None
        else text
        if isinstance(text, bytes)
        else text.encode("utf-8", "surrogatepass")
    )
    answer = send(door, "/v1/preparations", raw)
    if raw == b"":  # no body at all
        assert answer.status_code == 422
    else:
        assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("body", ["1.5", "0", '"text"', "[]", "true", "0.1e1"])
@pytest.mark.parametrize("path", WITH_BODY)
def test_a_body_that_is_no_object_is_refused(
    path: str, body: str, door: Door, places: dict[str, str]
) -> None:
    answer = send(door, places[path], body.encode())
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] in ("payload_invalid", "field_invalid")


def test_an_amount_comes_back_to_the_digit(door: Door) -> None:
    """Whether it was sent as a number or as text, no binary float is on the way."""
    for sent in ("1234567890123.45", '"1234567890123.45"'):
        body = json.dumps(new_customer(creditLimit="AMOUNT")).replace('"AMOUNT"', sent)
        prepared = send(door, "/v1/preparations", body.encode()).json()
        (change,) = [f for f in prepared["preview"]["fields"] if f["field"] == "creditLimit"]
        assert change["new"] == "1234567890123.45"
    body = json.dumps(new_customer(creditLimit="AMOUNT")).replace('"AMOUNT"', "0.1000000000000000055")
    answer = send(door, "/v1/preparations", body.encode())
    assert answer.json()["error"]["details"][0]["field"] == "creditLimit"


def test_a_duplicate_key_is_refused_not_chosen(door: Door) -> None:
    body = b'{"formId":"customer","opType":"create","payload":{"name":"a","name":"b"}}'
    answer = send(door, "/v1/preparations", body)
    assert answer.status_code == 400
    assert "payload.name" in answer.json()["error"]["message"]


def test_nesting_is_bounded(door: Door) -> None:
    deep = b'{"formId":"customer","opType":"create","payload":' + b'{"a":' * 40 + b"1" + b"}" * 41
    answer = send(door, "/v1/preparations", deep)
    assert answer.status_code == 400
    assert "deeper" in answer.json()["error"]["message"]


class Chunks(httpx.SyncByteStream):
    """A body of unknown length: sent chunked, without Content-Length."""

    def __init__(self, total: int) -> None:
        self.sent, self.total = 0, total

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"formId":"'
        while self.sent < self.total:
            self.sent += 65536
            yield b"x" * 65536
        yield b'"}'


def test_a_body_over_the_limit_is_refused(door: Door) -> None:
    limit = door.services.settings.body_max_bytes
    answer = send(door, "/v1/preparations", b'{"formId":"' + b"x" * limit + b'"}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


def test_a_chunked_body_over_the_limit_is_refused_before_it_has_all_come(door: Door) -> None:
    limit = door.services.settings.body_max_bytes
    body = Chunks(200 * limit)
    with httpx.Client(headers={"Authorization": f"Bearer {door.as_('u-lin').token}"}, timeout=30) as http:
        request = http.build_request("POST", f"{door.url}/v1/preparations", headers=JSON)
        request.stream = body
        request.headers["Transfer-Encoding"] = "chunked"
        request.headers.pop("Content-Length", None)
        try:
            answer = http.send(request)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")
        except httpx.WriteError:  # the server answered and hung up while we were still sending
            pass
    assert body.sent < 50 * limit


def test_a_chunked_body_within_the_limit_is_taken(door: Door) -> None:
    raw = json.dumps(new_customer()).encode()
    answer = door.as_("u-lin").http.post("/v1/preparations", content=iter([raw[:10], raw[10:]]), headers=JSON)
    assert answer.status_code == 200
    assert answer.request.headers["transfer-encoding"] == "chunked"


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml"]
)
def test_a_body_says_that_it_is_json(kind: str, door: Door) -> None:
    """A form of another site cannot: browsers send these types without asking."""
    raw = json.dumps(new_customer()).encode()
    headers = {"Content-Type": kind} if kind else {}
    http = door.as_("u-lin").http
    request = http.build_request("POST", "/v1/preparations", content=raw, headers=headers)
    answer = http.send(request)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "payload_invalid")
    assert "application/json" in answer.json()["error"]["message"]


def test_every_bad_field_is_reported_at_once(door: Door) -> None:
    body: dict[str, Any] = {
        "formId": 1,
        "opType": None,
        "nonsense": 1,
        "expiresIn": -1,
        "notBefore": "yesterday",
        "payload": [],
    }
    answer = door.as_("u-lin").post("/v1/preparations", body, expect=422)["error"]
    assert {d["field"] for d in answer["details"]} == set(body)
    assert all(d["message"] for d in answer["details"])


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_errors_speak_the_callers_language(locale: str, door: Door) -> None:
    answer = door.as_("u-lin").get("/v1/operations/none", expect=404, headers={"Accept-Language": locale})
    assert ("找不到" in answer["error"]["message"]) == (locale == "zh")


def test_a_command_may_be_named_instead_of_form_and_type(door: Door) -> None:
    prepared = door.prepare("u-lin", commandType="erp.customer.create", payload={"name": word()})
    assert prepared["commandType"] == "erp.customer.create"
    assert prepared["state"] == "PREPARED"
    assert door.as_("u-lin", PERSON).get(f"/v1/preparations/{prepared['preparationId']}") == prepared


def test_several_operations_are_one_preparation(door: Door) -> None:
    items = [new_customer(), {**new_customer(), "dependsOn": ["#1"]}]
    prepared = door.prepare("u-lin", items=items)
    assert len(prepared["items"]) == 2
    path = f"/v1/preparations/{prepared['preparationId']}/confirm"
    first, second = door.as_("u-lin").post(path, expect=202)["operations"]
    assert (first["code"], second["code"]) == (100, 105)
    assert first["preparationId"] == second["preparationId"] == prepared["preparationId"]
