"""What the API shows of the ERP: forms granted, schemas, choices, records, queries; never another tenant's."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from staging.contracts.query import PageRequest, QueryRequest, SortKey
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor
from tests.support.shop_erp import BOSS, CLERK, STRANGER, TENANT, Shop, quote


def _query(shop: Shop, actor: Actor = BOSS, **request: Any) -> list[str]:
    return [item["id"] for item in shop.adapter.query_records(actor, "quote", QueryRequest(**request)).items]


def test_forms_are_those_granted_with_their_operations(shop: Shop) -> None:
    (form,) = shop.adapter.forms(CLERK, "")
    assert form["formId"] == "quote"
    assert [op["opType"] for op in form["opTypes"]] == ["create"]
    assert {f["formId"] for f in shop.adapter.forms(BOSS, "")} == {
        "customer",
        "region",
        "product",
        "quote",
        "request",
        "order",
    }
    assert [f["formId"] for f in shop.adapter.forms(BOSS, "报价")] == ["quote"]
    assert [f["formId"] for f in shop.adapter.forms(BOSS, "QUOT")] == ["quote"]
    assert "rename" in [op["opType"] for op in shop.adapter.forms(BOSS, "quote")[0]["opTypes"]]
    assert shop.adapter.forms(Actor(TENANT, "nobody"), "") == []


def test_a_schema_has_what_a_form_needs_to_be_drawn(shop: Shop) -> None:
    schema = shop.adapter.form_schema(BOSS, "quote")
    fields = {field["name"]: field for field in schema["fields"]}
    assert fields["customer"]["reference"] == {"form": "customer", "by": ["id", "name"]}
    assert fields["kind"]["choices"][1] == {"value": "rush", "label": "加急"}
    assert fields["taxRate"]["maximum"] == "1"
    assert fields["total"]["computed"]
    assert not fields["total"]["writable"]
    assert not fields["madeBy"]["onUpdate"]
    assert schema["children"][0]["children"][0]["name"] == "tiers"
    with pytest.raises(OpstageError) as caught:
        shop.adapter.form_schema(CLERK, "order")
    assert caught.value.code == E.FORBIDDEN


def test_options_are_valid_records_of_the_tenant_that_match(shop: Shop) -> None:
    def ids(q: str, field: str = "customer") -> list[Any]:
        return [item["id"] for item in shop.adapter.field_options(BOSS, "quote", field, q, 1).items]

    assert ids("") == ["c1", "c2", "c3", "c4"]
    assert ids("同名") == ["c2", "c3"]
    assert ids("acme") == ["c4"]
    assert ids("KH0003 北京") == ["c3"]
    assert ids("%") == []
    assert ids("x\x00y") == []
    assert ids("", "parts.product") == ["p1", "p2"]
    assert ids("加", "kind") == ["rush"]
    with pytest.raises(OpstageError) as caught:
        ids("", "parts.nix")
    assert caught.value.code == E.FIELD_UNKNOWN


def test_a_record_is_shown_whole_with_names_for_references(shop: Shop) -> None:
    shown = shop.adapter.lookup_record(BOSS, "quote", "BJD202611001")
    assert (shown["id"], shown["label"]) == ("q1", "BJD202611001 KH0001 上海晨光文具有限公司")
    assert shown["texts"]["customer"] == "KH0001 上海晨光文具有限公司"
    assert shown["states"] == {"examined": False, "invalid": False}
    lines = shown["children"]["parts"]
    assert [line["id"] for line in lines] == ["l1", "l2"]
    assert lines[0]["children"]["tiers"][0]["values"]["price"] == "0.9000"
    for record in ("q9", "nix"):
        with pytest.raises(OpstageError) as caught:
            shop.adapter.lookup_record(BOSS, "quote", record)
        assert caught.value.code == E.RECORD_NOT_FOUND
    assert shop.adapter.lookup_record(STRANGER, "quote", "BJD202611001")["id"] == "q9"


@pytest.mark.parametrize(
    ("filter_", "ids"),
    [
        ({}, ["q1", "q2", "q3"]),
        ({"title": "画册"}, ["q1"]),
        ({"title": ["画册", "作废"]}, ["q1", "q3"]),
        ({"title": {"contains": "审"}}, ["q2"]),
        ({"title": {"contains": "%"}}, []),
        ({"customer": "KH0001"}, ["q1"]),
        ({"customer": "Acme Paper"}, ["q2", "q3"]),
        ({"total": {"from": "30", "to": 30}}, ["q1"]),
        ({"total": {"from": Decimal("30.01")}}, ["q2"]),
        ({"examined": True}, ["q2"]),
        ({"id": ["q1", "q9"]}, ["q1"]),
        ({"quoteDate": None}, ["q1", "q2", "q3"]),
    ],
)
def test_a_filter_finds_what_it_says(shop: Shop, filter_: dict[str, Any], ids: list[str]) -> None:
    assert sorted(_query(shop, filter=filter_)) == ids


def test_bad_filters_and_sorts_are_refused_all_at_once(shop: Shop) -> None:
    asked = {"nix": 1, "memo": "x", "total": "viel", "title": {"like": "x"}, "customer": "外地公司"}
    with pytest.raises(OpstageError) as caught:
        _query(shop, filter=asked)
    assert {d.field for d in caught.value.details} == {f"filter.{name}" for name in asked}
    with pytest.raises(OpstageError) as caught:
        _query(shop, sort=[SortKey(field="memo")])
    assert caught.value.code == E.QUERY_SORT_FIELD_NOT_ALLOWED


def test_amounts_sort_as_numbers_and_empty_ones_last(shop: Shop) -> None:
    shop.change(quote, "q3", dTotal=Decimal("9.00"), tQuoteDate=None)
    assert _query(shop, sort=[SortKey(field="total", direction="DESC")]) == ["q2", "q1", "q3"]
    assert _query(shop, sort=[SortKey(field="total")]) == ["q3", "q1", "q2"]
    result = shop.adapter.query_records(BOSS, "quote", QueryRequest(sort=[SortKey(field="quoteDate")]))
    assert [(s.field, s.direction) for s in result.applied_sort] == [("quoteDate", "ASC"), ("id", "ASC")]


def test_pages_follow_each_other(shop: Shop) -> None:
    first = shop.adapter.query_records(BOSS, "quote", QueryRequest(page=PageRequest(number=1, size=2)))
    second = shop.adapter.query_records(BOSS, "quote", QueryRequest(page=PageRequest(number=2, size=2)))
    assert ([i["id"] for i in first.items], first.page.has_more, first.page.total) == (["q1", "q2"], True, 3)
    assert ([i["id"] for i in second.items], second.page.has_more) == (["q3"], False)


def test_another_tenant_sees_its_own_only(shop: Shop) -> None:
    assert _query(shop, STRANGER) == ["q9"]
    assert _query(shop, STRANGER, filter={"id": "q1"}) == []
