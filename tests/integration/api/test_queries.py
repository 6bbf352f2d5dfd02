"""Registered queries over HTTP: listed with their schemas to whoever may ask them, asked by the Query Framework."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.support.api import AGENT, B002, OPERATOR, PERSON, Door

NAMES = ["orders", "customer_purchases", "quote", "quote_comparison"]
FILTERS: dict[str, dict[str, Any]] = {
    "orders": {"orderDate": {"from": "2026-01-01", "to": "2026-12-31"}, "status": ["examined"]},
    "customer_purchases": {"groupBy": "customer"},
    "quote": {"customer": "KH0003", "lines": [{"product": "CP00001", "quantity": "100"}]},
    "quote_comparison": {"customer": "KH0003", "product": ["CP00001"], "quantity": ["1", "500"]},
}


def test_the_list_is_in_the_callers_language_and_only_of_what_is_granted(door: Door) -> None:
    listed = door.as_("u-sun", AGENT).get("/v1/queries")
    assert [query["name"] for query in listed] == NAMES
    assert listed[0]["sortable"] == ["orderDate", "billNo", "totalAmount", "id"]
    zh = door.as_("u-sun", AGENT).get("/v1/queries", headers={"Accept-Language": "zh"})
    assert [(a["label"], b["label"]) for a, b in zip(listed, zh, strict=True)][2] == ("Quote", "即时报价")
    assert door.as_("u-zhou", AGENT).get("/v1/queries") == []
    assert door.as_("ops", OPERATOR).get("/v1/queries") == []


@pytest.mark.parametrize("name", NAMES)
def test_filters_and_rows_are_as_the_schemas_say(door: Door, name: str) -> None:
    caller = door.as_("u-sun", AGENT)
    (told,) = [query for query in caller.get("/v1/queries") if query["name"] == name]
    jsonschema.validate(FILTERS[name], told["filterSchema"])
    found = caller.post(f"/v1/queries/{name}", {"filter": FILTERS[name], "page": {"size": 5}})
    assert found["items"]
    for row in found["items"]:
        jsonschema.validate(row, told["rowSchema"])
        jsonschema.Draft202012Validator.check_schema(told["rowSchema"])
    assert found["appliedSort"][-1]["field"] == told["sortable"][-1]
    assert found["page"].keys() == {"number", "size", "total", "hasMore"}


def test_every_bad_field_is_told_at_once(door: Door) -> None:
    asked = {"filter": {"brandsId": "B002", "status": "open", "product": "CP00001"}}
    error = door.as_("u-sun", AGENT).post("/v1/queries/orders", asked, expect=422)["error"]
    assert {d["field"]: d["code"] for d in error["details"]} == {
        "filter.brandsId": "field_unknown",
        "filter.status[0]": "field_invalid",
    }


def test_refusals_speak_the_contracts_codes(door: Door) -> None:
    caller = door.as_("u-sun", AGENT)

    def code(status: int, name: str = "orders", **request: Any) -> str:
        return str(caller.post(f"/v1/queries/{name}", request, expect=status)["error"]["code"])

    assert code(404, "nothing") == "form_not_found"
    assert code(404, "🧧'; --") == "form_not_found"
    assert code(422, sort=[{"field": "customerName"}]) == "query_sort_field_not_allowed"
    assert code(422, sort=[{"field": "billNo", "direction": "down"}]) == "query_direction_invalid"
    assert code(422, page={"number": 0}) == "query_page_invalid"
    assert code(422, filter={"customer": "上海云帆文化传播有限公司"}) == "reference_ambiguous"
    assert code(422, tenant="B002") == "field_unknown"
    refused = door.as_("u-zhou", AGENT).post("/v1/queries/orders", {}, expect=403)
    assert refused["error"]["code"] == "forbidden"


def test_another_tenant_sees_its_own_only(door: Door) -> None:
    mine = {o["id"] for o in door.as_("u-sun").post("/v1/queries/orders", {"page": {"size": 200}})["items"]}
    theirs = door.as_("u-gao", PERSON, B002).post("/v1/queries/orders", {"page": {"size": 200}})["items"]
    assert theirs
    assert mine.isdisjoint(o["id"] for o in theirs)
