"""Generate: from chosen lines of an examined source, never more than is left."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import OpstageError
from tests.support.shop_erp import BOSS, Shop, order_line, request_line

SOURCE = {"formId": "request", "record": "QGD0001"}


def _generate(shop: Shop, chosen: list[Any] | None = None, **payload: Any) -> Any:
    ref = SOURCE if chosen is None else {**SOURCE, "lines": chosen}
    return shop.prepare("order", "generate", source_ref=ref, payload=payload)


def test_all_lines_with_something_left_are_taken_by_default(shop: Shop) -> None:
    prepared = _generate(shop)
    assert prepared.source_ref == {
        "formId": "request",
        "record": "rq1",
        "lines": [{"id": "rl1", "quantity": "60.000"}, {"id": "rl2", "quantity": "50.000"}],
    }
    assert prepared.payload == {
        "department": "生产部",
        "lines": [
            {"product": "p1", "quantity": "60.000", "price": "0.0000"},
            {"product": "p2", "quantity": "50.000", "price": "0.0000"},
        ],
    }
    assert prepared.pins == {
        "source.lines[rl1].quantity": "100.000",
        "source.lines[rl1].taken": "40.000",
        "source.lines[rl2].quantity": "50.000",
        "source.lines[rl2].taken": "0.000",
    }


def test_the_preview_names_the_source_and_every_line(shop: Shop) -> None:
    preview = _generate(shop).preview
    source = preview.fields[0]
    assert (source.field, source.label, source.new_text) == ("sourceRef", "来源申请单", "QGD0001")
    (section,) = preview.children
    shown = [{f.field: f.new_text for f in line.fields} for line in section.lines]
    assert [(line["product"], line["quantity"]) for line in shown] == [
        ("铜版纸", "60.000"),
        ("胶版纸", "50.000"),
    ]


def test_what_was_shown_is_what_is_made_and_the_source_knows_it(shop: Shop) -> None:
    prepared = _generate(shop, [{"id": "rl2", "quantity": "20"}], memo="急")
    outcome = shop.execute(shop.execution(prepared))
    made = shop.adapter.lookup_record(BOSS, "order", outcome.result_bill_id)
    assert made["values"]["request"] == "rq1"
    assert made["values"]["memo"] == "急"
    assert made["texts"]["request"] == "QGD0001"
    (line,) = made["children"]["lines"]
    assert line["values"]["quantity"] == "20.000"
    assert shop.row(order_line, line["id"])["sSourceLineId"] == "rl2"
    assert shop.row(request_line, "rl2")["dOrdered"] == Decimal("20.000")


def test_lines_of_the_payload_complete_the_chosen_ones_in_order(shop: Shop) -> None:
    chosen = [{"id": "rl2"}, {"id": "rl1", "quantity": 5}]
    prepared = _generate(shop, chosen, lines=[{"price": "2"}, {"quantity": "6", "price": "3"}])
    assert prepared.payload["lines"] == [
        {"price": "2.0000", "product": "p2", "quantity": "50.000"},
        {"quantity": "6.000", "price": "3.0000", "product": "p1"},
    ]
    assert [line["quantity"] for line in prepared.source_ref["lines"]] == ["50.000", "6.000"]


def test_a_prepared_generate_can_be_prepared_again_with_an_edit(shop: Shop) -> None:
    prepared = _generate(shop)
    edited = shop.adapter.restore_payload(prepared)
    edited["lines"][0]["quantity"] = "1"
    again = shop.prepare("order", "generate", source_ref=prepared.source_ref, payload=edited)
    assert again.source_ref
    assert again.source_ref["lines"][0] == {"id": "rl1", "quantity": "1.000"}


def test_more_than_is_left_is_refused_naming_what_is_left(shop: Shop) -> None:
    error = _refusal(shop, [{"id": "rl1", "quantity": "60.001"}, {"id": "rl2", "quantity": 1}])
    assert error.code == E.BUSINESS_RULE
    assert "60.000" in error.message("zh")
    assert "60.001" in error.message("en")
    assert _refusal(shop, [{"id": "rl3"}]).code == E.BUSINESS_RULE
    assert _refusal(shop, []).code == E.BUSINESS_RULE


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([{"id": "rl1", "quantity": "viel"}], E.FIELD_INVALID),
        ([{"id": "rl1", "quantity": -1}], E.FIELD_INVALID),
        ([{"id": "rl1", "quantity": 0}], E.FIELD_INVALID),
        ([{"id": "rl1"}, {"id": "rl1"}], E.FIELD_INVALID),
        ([{"id": "rl4"}], E.RECORD_NOT_FOUND),
        ([{"id": "nix"}], E.RECORD_NOT_FOUND),
        ([{"quantity": 1}], E.FIELD_INVALID),
        (["rl1"], E.FIELD_INVALID),
    ],
)
def test_lines_that_are_not_the_sources_are_refused(shop: Shop, lines: list[Any], code: E) -> None:
    assert _refusal(shop, lines).code == code


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        (None, E.FIELD_REQUIRED),
        ({"formId": "request"}, E.FIELD_REQUIRED),
        ({**SOURCE, "brandsId": "b2"}, E.FIELD_INVALID),
        ({"formId": "quote", "record": "q1"}, E.FORM_NOT_FOUND),
        ({"formId": "request", "record": "nix"}, E.RECORD_NOT_FOUND),
        ({"formId": "request", "record": "rq2"}, E.STATE_CONFLICT),
    ],
)
def test_a_source_that_does_not_fit_is_refused(shop: Shop, ref: Any, code: E) -> None:
    assert shop.refusal("order", "generate", source_ref=ref).code == code


def test_a_wrong_number_of_lines_is_a_bad_field(shop: Shop) -> None:
    error = shop.refusal("order", "generate", source_ref=SOURCE, payload={"lines": [{"price": 1}]})
    assert [d.field for d in error.details] == ["lines"]


def test_a_source_line_taken_by_somebody_else_meanwhile_is_a_conflict(shop: Shop) -> None:
    prepared = _generate(shop, [{"id": "rl2", "quantity": "20"}])
    shop.change(request_line, "rl2", dOrdered=Decimal("10.000"))
    before = shop.snapshot()
    with pytest.raises(OpstageError) as caught:
        shop.execute(shop.execution(prepared))
    assert caught.value.code == E.VERSION_CONFLICT
    (entry,) = caught.value.conflict
    assert (entry["seen"], entry["now"]) == ("0.000", "10.000")
    assert shop.snapshot() == before


def _refusal(shop: Shop, lines: list[Any]) -> OpstageError:
    return shop.refusal("order", "generate", source_ref={**SOURCE, "lines": lines})
