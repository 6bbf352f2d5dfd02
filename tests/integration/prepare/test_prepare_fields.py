"""Fields of a payload: every value by its type with no guessing, every bad one reported at once by its path."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from tests.support.shop_erp import BOSS, Shop

PART = {"name": "封面", "quantity": "1", "price": "1"}


def _payload(**more: Any) -> dict[str, Any]:
    return {"customer": "KH0001", "title": "新画册", "parts": [PART], **more}


def test_a_payload_is_normalized_by_the_columns_types(shop: Shop) -> None:
    prepared = shop.prepare(
        "quote",
        "create",
        payload={
            "customer": "上海晨光文具有限公司",
            "title": "Cafe\u0301 样本",
            "kind": "加急",
            "level": "Second",
            "urgent": True,
            "sentAt": "2026-11-30T09:00:00.250+08:00",
            "quoteDate": "2026-11-29",
            "days": "45",
            "taxRate": Decimal("0.06"),
            "memo": "第一行\n第二行",
            "parts": [
                {
                    "name": "封面",
                    "product": "铜版纸",
                    "quantity": 1000,
                    "tiers": [{"quantity": "5000", "price": Decimal("1.1")}],
                }
            ],
        },
    )
    assert prepared.payload == {
        "customer": "c1",
        "title": "Café 样本",
        "address": "漕河泾1号",
        "region": "r1",
        "manager": "王经理",
        "kind": "rush",
        "level": 2,
        "urgent": True,
        "sentAt": "2026-11-30T01:00:00.250000Z",
        "quoteDate": "2026-11-29",
        "madeBy": "boss",
        "days": 45,
        "taxRate": "0.0600",
        "memo": "第一行\n第二行",
        "total": "1234.50",
        "gross": "74.07",
        "parts": [
            {
                "name": "封面",
                "product": "p1",
                "quantity": "1000.000",
                "price": "1.2345",
                "amount": "1234.50",
                "tiers": [{"quantity": "5000.000", "price": "1.1000", "amount": "5500.00"}],
            }
        ],
    }
    assert prepared.target_bill_id == ""
    assert (prepared.pins, prepared.target_version) == ({}, "")


def test_a_normalized_payload_goes_in_again_unchanged(shop: Shop) -> None:
    first = shop.prepare("quote", "create", payload=_payload(memo="x"))
    restored = shop.adapter.restore_payload(first)
    assert "total" not in restored
    assert "amount" not in restored["parts"][0]
    assert shop.prepare("quote", "create", payload=restored).payload == first.payload


def test_every_bad_field_is_reported_at_once_with_its_path(shop: Shop) -> None:
    codes = shop.codes(
        "quote",
        "create",
        payload={
            "custmer": "x",
            "billNo": "BJD1",
            "total": 5,
            "days": Decimal("1.5"),
            "taxRate": "1,000",
            "kind": "vip",
            "urgent": 1,
            "quoteDate": "2026-02-30",
            "sentAt": "2026-11-30T09:00:00",
            "title": "这个标题长得超过二十个字符所以一定放不进去吧",
            "parts": [
                {"name": "a", "quantity": "一千", "price": True},
                {
                    "name": "b",
                    "quantity": 0,
                    "tiers": [{"quantity": "1", "price": "0.12345"}, {"price": 1, "x": 2}],
                },
                "封面",
            ],
        },
    )
    assert codes == {
        "custmer": E.FIELD_UNKNOWN,
        "billNo": E.FIELD_NOT_WRITABLE,
        "total": E.FIELD_NOT_WRITABLE,
        "days": E.FIELD_INVALID,
        "taxRate": E.FIELD_INVALID,
        "kind": E.FIELD_INVALID,
        "urgent": E.FIELD_INVALID,
        "quoteDate": E.FIELD_INVALID,
        "sentAt": E.FIELD_INVALID,
        "title": E.FIELD_INVALID,
        "customer": E.FIELD_REQUIRED,
        "parts[0].quantity": E.FIELD_INVALID,
        "parts[0].price": E.FIELD_INVALID,
        "parts[1].quantity": E.FIELD_INVALID,
        "parts[1].tiers[0].price": E.FIELD_INVALID,
        "parts[1].tiers[1].x": E.FIELD_UNKNOWN,
        "parts[1].tiers[1].quantity": E.FIELD_REQUIRED,
        "parts[2]": E.FIELD_INVALID,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("days", "1,000"),
        ("days", "一千"),
        ("days", "１２"),
        ("days", "1e2"),
        ("days", Decimal("1E+400")),
        ("days", Decimal("1.5")),
        ("days", True),
        ("days", 0),
        ("days", 366),
        ("days", ""),
        ("days", [1]),
        ("days", {"value": 1}),
        ("taxRate", "NaN"),
        ("taxRate", Decimal("NaN")),
        ("taxRate", Decimal("Infinity")),
        ("taxRate", "0.12345"),
        ("taxRate", "+0.1"),
        ("taxRate", "00.1"),
        ("taxRate", " 0.1"),
        ("taxRate", 10**40),
        ("title", "a\x00b"),
        ("title", "a\nb"),
        ("title", "\ud800"),
        ("title", 12),
        ("memo", "a\x07b"),
        ("level", "1"),
        ("level", True),
        ("quoteDate", "2026-1-2"),
        ("quoteDate", "2026-11-30T00:00:00Z"),
        ("quoteDate", 20261130),
        ("sentAt", "2026-11-30"),
        ("customer", 1),
        ("customer", "\ud800"),
        ("parts", {}),
        ("parts", "封面"),
    ],
)
def test_no_value_is_guessed_at(shop: Shop, field: str, value: Any) -> None:
    codes = shop.codes("quote", "create", payload=_payload(**{field: value}))
    assert codes[field] in (E.FIELD_INVALID, E.FIELD_REQUIRED)


@pytest.mark.parametrize("title", ["😀画册", "Zürich", "a b", "x" * 20, "' OR 1=1 --", "%s :x {y} \\"])
def test_text_is_kept_as_it_is(shop: Shop, title: str) -> None:
    outcome = shop.run("quote", "create", payload=_payload(title=title))
    assert shop.adapter.lookup_record(BOSS, "quote", outcome.result_bill_id)["values"]["title"] == title


@pytest.mark.parametrize(
    "name",
    [
        "sId",
        "sBrandsId",
        "id",
        "title\x00",
        "title`",
        'title"',
        "title; --",
        "%s",
        ":x",
        "ｔitle",
        "",
        "parts.name",
    ],
)
def test_a_name_that_is_no_field_never_reaches_sql(shop: Shop, name: str) -> None:
    problems = shop.problems("quote", "create", payload=_payload(**{name: "x"}))
    assert [p.code for p in problems.values()] == [E.FIELD_UNKNOWN]


@pytest.mark.parametrize("name", ["examined", "billNo", "gross"])
def test_what_the_system_sets_is_not_writable(shop: Shop, name: str) -> None:
    assert shop.codes("quote", "create", payload=_payload(**{name: "1"})) == {name: E.FIELD_NOT_WRITABLE}


def test_an_unknown_name_is_answered_with_those_that_come_near(shop: Shop) -> None:
    problem = shop.problems("quote", "create", payload=_payload(titel="x", 客户="y"))
    assert "title" in problem["titel"].message("en")
    assert "customer" in problem["客户"].message("zh")


def test_lines_are_counted_and_told_apart(shop: Shop) -> None:
    assert shop.codes("quote", "create", payload=_payload(parts=[])) == {"parts": E.FIELD_INVALID}
    many = [{**PART, "name": str(n)} for n in range(5)]
    assert shop.codes("quote", "create", payload=_payload(parts=many)) == {"parts": E.FIELD_INVALID}
    assert shop.codes("quote", "create", payload=_payload(parts=[PART, PART])) == {
        "parts[1]": E.FIELD_INVALID
    }


def test_a_blank_text_does_not_fill_a_required_field(shop: Shop) -> None:
    for blank in ("", "  ", None):
        assert shop.codes("quote", "create", payload=_payload(title=blank)) == {"title": E.FIELD_REQUIRED}


def test_a_total_that_outgrows_its_column_is_refused(shop: Shop) -> None:
    lines = [{"name": "a", "quantity": "99999999999999", "price": "99999999999999"}]
    assert shop.codes("quote", "create", payload=_payload(parts=lines))["parts[0].amount"] == E.FIELD_INVALID


def test_totals_are_exact_and_rounded_half_up(shop: Shop) -> None:
    lines = [
        {"name": "a", "quantity": "0.001", "price": "5"},  # 0.005 → 0.01
        {"name": "b", "quantity": "3", "price": "0.1"},
        {"name": "c", "quantity": "12345678901.234", "price": "1.0001"},
    ]
    payload = shop.prepare("quote", "create", payload=_payload(parts=lines, taxRate=1)).payload
    assert [line["amount"] for line in payload["parts"]] == ["0.01", "0.30", "12346913469.12"]
    assert payload["total"] == payload["gross"] == "12346913469.43"


def test_a_record_named_for_a_new_one_is_refused(shop: Shop) -> None:
    assert shop.codes("quote", "create", record="q1", payload=_payload()) == {"record": E.FIELD_INVALID}
    assert (
        shop.refusal("quote", "create", source_ref={"formId": "x"}, payload=_payload()).code
        == E.FIELD_UNKNOWN
    )
