"""Updates: only what is named changes, lines by their id, and a pin on exactly what is read or written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from staging.domain.canonical import fingerprint
from staging.domain.errors import OpstageError
from tests.support.shop_erp import BOSS, Shop, part, quote, tier

CHANGE = {"title": "新画册", "parts": [{"id": "l1", "price": "2.00"}]}


def _update(shop: Shop, payload: dict[str, Any], record: str = "q1") -> Any:
    return shop.prepare("quote", "update", record=record, payload=payload)


def test_only_differences_are_kept_and_totals_follow(shop: Shop) -> None:
    prepared = _update(shop, {**CHANGE, "kind": "normal", "days": 30}, record="BJD202611001")
    assert prepared.target_bill_id == "q1"
    assert prepared.payload == {
        "title": "新画册",
        "total": "40.00",
        "gross": "5.20",
        "parts": [{"id": "l1", "price": "2.0000", "amount": "20.00"}],
    }


def test_pins_are_what_is_read_or_written_and_nothing_else(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    assert prepared.pins == {
        "@examined": False,
        "@invalid": False,
        "title": "画册",
        "total": "30.00",
        "gross": "3.90",
        "parts[l1]": True,
        "parts[l1].price": "1.0000",
        "parts[l1].amount": "10.00",
    }
    assert prepared.target_version == fingerprint(prepared.pins)


def test_the_preview_shows_old_and_new_with_labels(shop: Shop) -> None:
    preview = _update(shop, {**CHANGE, "customer": "KH0004"}).preview
    assert preview.title == "修改报价单 BJD202611001 KH0001 上海晨光文具有限公司"
    fields = {f.field: f for f in preview.fields}
    assert (fields["title"].label, fields["title"].old, fields["title"].new) == ("标题", "画册", "新画册")
    assert fields["customer"].old_text == "KH0001 上海晨光文具有限公司"
    assert fields["customer"].new_text == "KH0004 Acme Paper"
    (section,) = preview.children
    (line,) = section.lines
    assert (section.label, line.action, line.line_id) == ("部件", "change", "l1")
    assert {f.field: (f.old, f.new) for f in line.fields}["price"] == ("1.0000", "2.0000")
    assert {t.field: (t.old, t.new) for t in preview.totals} == {
        "total": ("30.00", "40.00"),
        "gross": ("3.90", "5.20"),
    }


def test_the_preview_speaks_the_actors_language(shop: Shop) -> None:
    english = type(BOSS)(BOSS.tenant, BOSS.user_id, BOSS.kind, "en")
    preview = shop.prepare("quote", "update", actor=english, record="q1", payload={"kind": "rush"}).preview
    assert preview.title.startswith("Update quotation")
    assert [(f.label, f.old_text, f.new_text) for f in preview.fields] == [("Kind", "Normal", "Rush")]


def test_lines_are_added_changed_and_removed_and_others_stay(shop: Shop) -> None:
    lines = [{"id": "l2", "remove": True}, {"name": "封套", "quantity": 3, "price": 1}]
    prepared = _update(shop, {"parts": lines})
    assert prepared.payload["parts"] == [
        {"id": "l2", "remove": True},
        {"name": "封套", "quantity": "3.000", "price": "1.0000", "amount": "3.00"},
    ]
    assert prepared.payload["total"] == "13.00"
    shop.execute(shop.execution(prepared))
    shown = shop.adapter.lookup_record(BOSS, "quote", "q1")
    assert [line["values"]["name"] for line in shown["children"]["parts"]] == ["封面", "封套"]
    assert shown["values"]["total"] == "13.00"


def test_lines_below_lines_are_changed_by_their_id(shop: Shop) -> None:
    lines = [{"id": "l1", "tiers": [{"id": "t1", "price": "0.8"}, {"quantity": 500, "price": "0.7"}]}]
    prepared = _update(shop, {"parts": lines})
    assert prepared.payload == {
        "parts": [
            {
                "id": "l1",
                "tiers": [
                    {"id": "t1", "price": "0.8000", "amount": "80.00"},
                    {"quantity": "500.000", "price": "0.7000", "amount": "350.00"},
                ],
            }
        ]
    }
    assert prepared.pins["parts[l1].tiers[t1].price"] == "0.9000"
    shop.execute(shop.execution(prepared))
    assert str(shop.row(tier, "t1")["dAmount"]) == "80.00"


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ([{"id": "nix", "price": 1}], "parts[0].id"),
        ([{"id": 1, "price": 1}], "parts[0].id"),
        ([{"id": "t1", "price": 1}], "parts[0].id"),
        ([{"id": "l1", "price": 1}, {"id": "l1", "price": 2}], "parts[1].id"),
        ([{"id": "l1", "remove": False}], "parts[0].remove"),
        ([{"id": "l1", "remove": True, "price": 1}], "parts[0].remove"),
        ([{"id": "l1", "remove": True}, {"id": "l2", "remove": True}], "parts"),
        ([{"id": "l1", "name": "内页"}], "parts[0]"),
        ([{"id": "l1", "tiers": [{"id": "t2", "price": 1}]}], "parts[0].tiers[0].id"),
        ([{"name": "x", "remove": True}], "parts[0].remove"),
    ],
)
def test_lines_that_make_no_sense_are_bad_fields(shop: Shop, lines: list[Any], path: str) -> None:
    assert path in shop.problems("quote", "update", record="q1", payload={"parts": lines})


def test_a_change_that_changes_nothing_is_refused(shop: Shop) -> None:
    payload = {"title": "画册", "customer": "KH0001", "parts": [{"id": "l1", "price": "1.0"}]}
    assert shop.refusal("quote", "update", record="q1", payload=payload).code == E.BUSINESS_RULE
    assert shop.refusal("quote", "update", record="q1", payload={}).code == E.BUSINESS_RULE


def test_what_is_fixed_at_creation_is_not_writable_later(shop: Shop) -> None:
    codes = shop.codes("quote", "update", record="q1", payload={"madeBy": "clerk"})
    assert codes == {"madeBy": E.FIELD_NOT_WRITABLE}


def test_emptying_a_field_gives_its_constant_default_or_nothing(shop: Shop) -> None:
    prepared = _update(shop, {"kind": "rush", "title": "x"})
    shop.execute(shop.execution(prepared))
    assert _update(shop, {"kind": None}).payload == {"kind": "normal"}
    shop.change(quote, "q1", sMemo="alt")
    assert _update(shop, {"memo": None}).payload == {"memo": None}
    assert shop.codes("quote", "update", record="q1", payload={"title": None}) == {"title": E.FIELD_REQUIRED}


@pytest.mark.parametrize("record", ["q9", "nix", "\x00", "x" * 200, "Q1", "KH0001"])
def test_a_record_of_nobody_or_of_another_tenant_is_not_found(shop: Shop, record: str) -> None:
    error = shop.refusal("quote", "update", record=record, payload={"title": "x"})
    assert error.code == E.RECORD_NOT_FOUND


def test_a_number_that_two_records_share_is_ambiguous(shop: Shop) -> None:
    shop.add(quote, sId="q4", sBillNo="BJD202611001", sTitle="又一", sCustomerId="c4")
    error = shop.refusal("quote", "update", record="BJD202611001", payload={"title": "x"})
    assert error.code == E.RECORD_AMBIGUOUS
    assert [c["id"] for c in error.candidates] == ["q1", "q4"]


# ------------------------------------------------------------------------------------------------ drift since then


def _conflict(shop: Shop, prepared: Any) -> dict[str, dict[str, Any]]:
    """What execution says has changed; it must have written nothing."""
    before = shop.snapshot()
    with pytest.raises(OpstageError) as caught:
        shop.execute(shop.execution(prepared))
    assert caught.value.code == E.VERSION_CONFLICT
    assert shop.snapshot() == before
    with pytest.raises(OpstageError):
        shop.adapter.recheck(BOSS, prepared)
    return {entry["field"]: entry for entry in caught.value.conflict}


def test_drift_of_what_is_written_is_shown_as_seen_now_and_proposed(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    shop.change(quote, "q1", sTitle="别人改的")
    assert _conflict(shop, prepared) == {
        "title": {"field": "title", "label": "标题", "seen": "画册", "now": "别人改的", "proposed": "新画册"}
    }


def test_drift_of_a_line_names_the_line(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    shop.change(part, "l1", dPrice=Decimal("1.5"))
    (entry,) = _conflict(shop, prepared).values()
    assert entry == {
        "field": "parts[l1].price",
        "label": "部件第1行 单价",
        "seen": "1.0000",
        "now": "1.5000",
        "proposed": "2.0000",
    }


def test_a_line_that_is_gone_is_a_conflict_and_no_bad_field(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    with shop.engine.begin() as connection:
        connection.execute(part.delete().where(part.c.sId == "l1"))
    conflict = _conflict(shop, prepared)
    assert (conflict["parts[l1]"]["seen"], conflict["parts[l1]"]["now"]) == (True, None)


def test_a_line_to_be_removed_is_pinned_whole(shop: Shop) -> None:
    prepared = _update(shop, {"parts": [{"id": "l1", "remove": True}]})
    shop.change(tier, "t1", dPrice=Decimal("0.5"))
    assert set(_conflict(shop, prepared)) == {"parts[l1].tiers[t1].price"}


def test_an_unrelated_edit_spoils_nothing(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    shop.change(quote, "q1", sUnrelated="x", sMemo="y", iDays=7)
    shop.change(part, "l2", sNote="z")
    shop.adapter.recheck(BOSS, prepared)
    shop.execute(shop.execution(prepared))
    assert shop.row(quote, "q1")["sTitle"] == "新画册"


def test_an_examination_in_between_is_a_state_conflict(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    shop.change(quote, "q1", bCheck=1)
    with pytest.raises(OpstageError) as caught:
        shop.execute(shop.execution(prepared))
    assert caught.value.code == E.STATE_CONFLICT


def test_a_payload_is_not_executed_if_it_would_come_out_differently(shop: Shop) -> None:
    prepared = _update(shop, CHANGE)
    other = {**prepared.payload, "total": "99.00"}
    with pytest.raises(OpstageError) as caught:
        shop.execute(shop.execution(prepared, payload=other))
    assert caught.value.code == E.VERSION_CONFLICT


@pytest.mark.parametrize("op_type", ["update", "examine", "invalid", "delete"])
def test_a_change_that_names_no_record_is_told_to_name_one(shop: Shop, op_type: str) -> None:
    with pytest.raises(OpstageError) as caught:
        shop.prepare("quote", op_type, payload=CHANGE if op_type == "update" else {})
    (detail,) = caught.value.details
    assert (detail.field, detail.code) == ("record", E.FIELD_REQUIRED)
    assert "缺少单据" in caught.value.message("zh")
