"""Bodies nobody thought of, at every call that takes one: refused in the one shape or taken, never an error of ours."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from staging.contracts.error import ErrorResponse
from staging.domain.identity import ActorKind
from tests.support.api import AGENT, B002, OPERATOR, PERSON, Door
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier

EXAMPLES = int(os.environ.get("OPSTAGE_FUZZ_EXAMPLES", "40"))
LIMITS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
numbers = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, 1, 2**31, 2**63, 10**18, 0.1, 1e300]),
)
texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", " ", "1,000", "一千", "2026-02-30", "2026-11-30T08:00:00Z", "0001-01-01"]),
    st.sampled_from(["'", "%", "\\", "u-zhao"]),
    st.sampled_from(["KH0001", "KH0003", "u-lin", "asc", "DESC", "id", "erp.customer.create", "#1", "*", "null"]),
)  # fmt: skip
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def bodies(*names: str) -> st.SearchStrategy[Any]:
    """Mostly objects with some of the known names, sometimes anything."""
    known = st.dictionaries(st.sampled_from(names), values, max_size=6)
    return st.one_of(known, known, known, values)


def filters(*fields: str) -> st.SearchStrategy[Any]:
    ranges = st.dictionaries(st.sampled_from(["from", "to", "contains", "x"]), scalars, max_size=3)
    one = st.one_of(scalars, st.lists(scalars, max_size=4), ranges)
    page = st.dictionaries(st.sampled_from(["number", "size"]), numbers | texts, max_size=2)
    key = st.fixed_dictionaries(
        {"field": st.sampled_from([*fields, "id", "x"])},
        optional={"direction": st.sampled_from(["ASC", "DESC", "desc", ""])},
    )
    return st.fixed_dictionaries(
        {"filter": st.dictionaries(st.sampled_from(fields), one, max_size=4)},
        optional={"page": page, "sort": st.lists(key, max_size=3)},
    )


def assert_no_error_of_ours(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if not answer.is_success:
        ErrorResponse.model_validate_json(answer.content)


def post(door: Door, path: str, body: Any, kind: ActorKind = PERSON) -> httpx.Response:
    raw = json.dumps(body, ensure_ascii=True).encode()
    headers = {"Content-Type": "application/json"}
    return door.as_(USER, kind, B002).http.post(path, content=raw, headers=headers)


# Of the other company: what is left lying about here is in nobody else's lists. May do everything.
USER = "u-gao"
CUSTOMER = (
    "name",
    "type",
    "contact",
    "phone",
    "city",
    "address",
    "paymentDays",
    "creditLimit",
    "memo",
    "number",
)
QUOTATION = ("customer", "title", "quoteDate", "validDays", "payTerm", "taxRate", "parts", "totalAmount")
LINE = ("name", "quantity", "price", "tiers", "id", "remove", "amount")


@LIMITS
@given(payload=bodies(*CUSTOMER))
def test_payloads_of_a_plain_form(payload: Any, door: Door) -> None:
    request = {"formId": "customer", "opType": "create", "payload": payload}
    assert_no_error_of_ours(post(door, "/v1/preparations", request, kind=AGENT))


@LIMITS
@given(
    payload=bodies(*QUOTATION),
    lines=st.lists(bodies("name", "quantity", "price", "tiers", "id", "remove"), max_size=3),
)
def test_payloads_with_lines(payload: Any, lines: list[Any], door: Door) -> None:
    if isinstance(payload, dict):
        payload = {**payload, "parts": lines}
    for op_type in ("create", "update"):
        request = {"formId": "quotation", "opType": op_type, "payload": payload, "record": "BJD202611001"}
        assert_no_error_of_ours(post(door, "/v1/preparations", request, kind=AGENT))


@LIMITS
@given(
    body=bodies(
        *("formId", "opType", "record", "payload", "sourceRef", "conversationId", "dependsOn", "notBefore"),
        *("expiresIn", "commandType", "items", "supersedes", "traceId", "allowDuplicate"),
    )
)
def test_preparations(body: Any, door: Door) -> None:
    assert_no_error_of_ours(post(door, "/v1/preparations", body, kind=AGENT))
    if isinstance(body, dict):
        assert_no_error_of_ours(post(door, "/v1/preparations", {**new_customer(), **body}, kind=AGENT))


@LIMITS
@given(body=bodies("edits", "itemEdits", "allowDuplicate"), edits=bodies(*CUSTOMER))
def test_confirms(body: Any, edits: Any, door: Door) -> None:
    prepared = door.prepare(USER, B002, **new_customer())["preparationId"]
    for one in (body, {"edits": edits}):
        assert_no_error_of_ours(post(door, f"/v1/preparations/{prepared}/confirm", one))


@LIMITS
@given(
    asked=filters(
        *("status", "code", "formId", "opType", "user", "conversationId", "preparationId"),
        *("createdFrom", "createdTo"),
    )
)
def test_queries_over_operations(asked: Any, door: Door) -> None:
    for kind in (PERSON, OPERATOR):
        assert_no_error_of_ours(post(door, "/v1/operations/query", asked, kind))


@pytest.mark.parametrize("form", ["customer", "quotation", "product", "stock", "sales_order"])
def test_queries_over_records(form: str, door: Door) -> None:
    schema = door.as_(USER, PERSON, B002).get(f"/v1/forms/{form}")
    names = [field["name"] for field in schema["fields"]]

    @LIMITS
    @given(asked=filters(*names))
    def ask(asked: Any) -> None:
        assert_no_error_of_ours(post(door, f"/v1/forms/{form}/query", asked))

    ask()


@pytest.mark.parametrize("name", ["orders", "customer_purchases", "quote", "quote_comparison"])
def test_registered_queries(name: str, door: Door) -> None:
    (told,) = [q for q in door.as_(USER, PERSON, B002).get("/v1/queries") if q["name"] == name]
    names = list(told["filterSchema"]["properties"])

    @LIMITS
    @given(asked=filters(*names))
    def ask(asked: Any) -> None:
        assert_no_error_of_ours(post(door, f"/v1/queries/{name}", asked))

    ask()


@LIMITS
@given(body=bodies("resultBillId", "error", "reason", "edits"))
def test_what_is_done_to_operations(body: Any, door: Door) -> None:
    plain = door.stage(USER, B002, **new_supplier())["id"]
    for verb in ("complete", "revert", "restage", "reject", "approve", "retry", "cancel"):
        assert_no_error_of_ours(post(door, f"/v1/operations/{plain}/{verb}", body))


@LIMITS
@given(body=bodies("resultBillId", "error"))
def test_completing(body: Any, door: Door) -> None:
    def first(form: str) -> str:
        query = {"filter": {"invalid": False}, "page": {"size": 1}}
        return str(door.as_(USER, PERSON, B002).post(f"/v1/forms/{form}/query", query)["items"][0]["id"])

    op_id = door.stage(USER, B002, **new_outsource_order(first("supplier"), first("product")))["id"]
    assert_no_error_of_ours(post(door, f"/v1/operations/{op_id}/complete", body))
    assert_no_error_of_ours(door.as_(USER, PERSON, B002).http.get(f"/v1/operations/{op_id}"))
    assert_no_error_of_ours(door.as_(USER, PERSON, B002).http.get("/v1/todos"))


@LIMITS
@given(parts=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4), q=st.text(max_size=120))
def test_addresses(parts: list[str], q: str, door: Door) -> None:
    http = door.as_(USER, PERSON, B002).http
    for template in (
        "/v1/operations/{}",
        "/v1/preparations/{}",
        "/v1/forms/{}",
        "/v1/forms/customer/records/{}",
    ):
        try:
            request = http.build_request("GET", template.format("/".join(parts)))
        except (httpx.InvalidURL, UnicodeEncodeError):
            continue
        assert_no_error_of_ours(http.send(request))
    try:
        answer = http.get("/v1/forms/customer/fields/type/options", params={"q": q})
    except UnicodeEncodeError:
        return
    assert_no_error_of_ours(answer)
