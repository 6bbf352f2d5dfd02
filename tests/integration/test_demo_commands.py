"""Stock adjustments, listings and project titles of the demo ERP, on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError
from tests.databases import KINDS
from tests.support.demo_erp import SECOND, DemoErp, at_once, demo_erp, refused

ADJUST = "erp.stock_adjustment.create"
ON, OFF = "erp.product_listing.on", "erp.product_listing.off"
TITLE = "erp.digital_human_project.setTitle"


@pytest.fixture(scope="module", params=KINDS)
def erp(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoErp]:
    with demo_erp(request.param, tmp_path_factory.mktemp("demo")) as made:
        yield made


def delta(product: str, amount: str, reason: str = "other", **more: Any) -> dict[str, Any]:
    return {"product": product, "delta": amount, "reason": reason, **more}


# ------------------------------------------------------------------------------------------- stock adjustment
def test_an_adjustment_moves_stock_and_keeps_before_and_after(erp: DemoErp) -> None:
    before = erp.level("CP00001").quantity
    prepared = erp.prepare("u-wang", ADJUST, payload=delta("CP00001", "-2.5", "盘亏", memo="秋季盘点"))
    shown = {change.field: change.new for change in prepared.preview.fields}
    assert (Decimal(shown["before"]), Decimal(shown["after"])) == (before, before - Decimal("2.5"))
    assert erp.level("CP00001").quantity == before
    outcome = erp.execute("u-wang", prepared)
    row = erp.row("sto_adjustment", sId=outcome.result_bill_id)
    assert (row.dDelta, row.dBeforeQuantity, row.dAfterQuantity) == (
        Decimal("-2.5"),
        before,
        before - Decimal("2.5"),
    )
    assert (row.bCheck, row.sCheckPerson, row.sReason, row.sMemo) == (1, "u-wang", "count_loss", "秋季盘点")
    assert erp.level("CP00001").quantity == before - Decimal("2.5")
    assert erp.inconsistencies() == []


def test_stock_cannot_be_adjusted_below_zero_nor_into_what_is_reserved(erp: DemoErp) -> None:
    order = {"customer": "KH0003", "lines": [{"product": "CP00002", "quantity": "10"}]}
    erp.run("u-lin", "erp.sales_order.create", payload=order)
    level = erp.level("CP00002")
    error = refused(
        lambda: erp.prepare("u-wang", ADJUST, payload=delta("CP00002", str(-level.quantity))),
        ErrorCode.BUSINESS_RULE,
    )
    assert f"{level.free.normalize():f}" in error.message("zh")
    prepared = erp.prepare("u-wang", ADJUST, payload=delta("CP00002", str(-level.free)))
    erp.run("u-wang", ADJUST, payload=delta("CP00002", "-0.001"))
    refused(lambda: erp.execute("u-wang", prepared), ErrorCode.BUSINESS_RULE)
    assert erp.level("CP00002").free == level.free - Decimal("0.001")
    assert erp.inconsistencies() == []


def test_another_movement_in_between_does_not_spoil_an_adjustment(erp: DemoErp) -> None:
    before = erp.level("CP00003").quantity
    first = erp.prepare("u-wang", ADJUST, payload=delta("CP00003", "5"))
    second = erp.prepare("u-wang", ADJUST, payload=delta("CP00003", "-3"))
    erp.execute("u-wang", first)
    assert Decimal(str(erp.execute("u-wang", second).result["before"])) == before + 5
    assert erp.level("CP00003").quantity == before + 2


def test_a_place_without_stock_is_opened_by_what_comes_in_and_refuses_what_goes_out(erp: DemoErp) -> None:
    place = {"warehouse": "不良品仓"}
    refused(
        lambda: erp.prepare("u-wang", ADJUST, payload=delta("CP00004", "-1", **place)),
        ErrorCode.BUSINESS_RULE,
    )
    erp.run("u-wang", ADJUST, payload=delta("CP00004", "4", "count_gain", **place))
    assert erp.level("CP00004", "CK05").quantity == 4
    assert erp.inconsistencies() == []


@pytest.mark.parametrize("amount", ["0", "0.000", "1.0001", "1,000", "一千", "", True])
def test_what_is_no_change_or_no_number_is_refused(erp: DemoErp, amount: Any) -> None:
    error = refused(
        lambda: erp.prepare("u-wang", ADJUST, payload=delta("CP00001", amount)), ErrorCode.FIELD_INVALID
    )
    assert error.details[0].field == "delta"


def test_adjustments_that_race_add_up_exactly(erp: DemoErp) -> None:
    before = erp.level("CP00005").quantity
    amounts = ["0.1", "0.2", "-0.3", "7", "-7.001", "0.001", "12.345", "-2.345"]
    prepared = [erp.prepare("u-wang", ADJUST, payload=delta("CP00005", amount)) for amount in amounts]
    results = at_once(*(partial(erp.execute, "u-wang", one) for one in prepared))
    assert [result for result in results if isinstance(result, OpstageError)] == []
    assert erp.level("CP00005").quantity == before + sum(map(Decimal, amounts))
    assert erp.inconsistencies() == []  # before and after of each document follow from each other


def test_of_those_that_race_for_the_rest_only_as_many_win_as_there_is_stock(erp: DemoErp) -> None:
    left = erp.level("CP00006").free
    each = (left / 2 - 1).quantize(Decimal(1))
    prepared = [erp.prepare("u-wang", ADJUST, payload=delta("CP00006", str(-each))) for _ in range(5)]
    results = at_once(*(partial(erp.execute, "u-wang", one) for one in prepared))
    errors = [result.code for result in results if isinstance(result, OpstageError)]
    assert errors == [ErrorCode.BUSINESS_RULE] * 3
    assert erp.level("CP00006").free == left - 2 * each
    assert erp.inconsistencies() == []


def test_two_that_open_the_same_new_place_at_once_share_one_row(erp: DemoErp) -> None:
    prepared = [
        erp.prepare("u-wang", ADJUST, payload=delta("CP00009", "3", warehouse="CK05")) for _ in range(4)
    ]
    results = at_once(*(partial(erp.execute, "u-wang", one) for one in prepared))
    assert [result for result in results if isinstance(result, OpstageError)] == []
    assert erp.level("CP00009", "CK05").quantity == 12  # one row: level() would raise on two


def test_only_the_warehouse_adjusts_and_only_its_own_tenants_stock(erp: DemoErp) -> None:
    refused(lambda: erp.prepare("u-lin", ADJUST, payload=delta("CP00001", "1")), ErrorCode.FORBIDDEN)
    product = erp.row("eleproduct", sProductNo="CP00001").sId
    refused(
        lambda: erp.prepare("u-gao", ADJUST, tenant=SECOND, payload=delta(product, "1")),
        ErrorCode.REFERENCE_NOT_FOUND,
    )


# ------------------------------------------------------------------------------------------- listing
def test_a_product_is_put_on_sale_and_taken_off_with_who_and_when(erp: DemoErp) -> None:
    listing = erp.row("pro_listing", sListingNo="SJ00007")
    assert listing.bListed == 0
    prepared = erp.prepare("u-liu", ON, record="SJ00007")
    assert [(c.field, c.old, c.new) for c in prepared.preview.fields] == [("listed", False, True)]
    erp.execute("u-liu", prepared)
    row = erp.row("pro_listing", sListingNo="SJ00007")
    assert (row.bListed, row.sListPerson) == (1, "u-liu")
    assert row.tListDate is not None
    erp.run("u-liu", OFF, payload={"product": "CP00007"})
    row = erp.row("pro_listing", sListingNo="SJ00007")
    assert (row.bListed, row.sUnlistPerson, row.sListPerson) == (0, "u-liu", "u-liu")


def test_nothing_to_change_is_a_conflict_not_a_success(erp: DemoErp) -> None:
    refused(lambda: erp.prepare("u-liu", ON, record="SJ00001"), ErrorCode.STATE_CONFLICT)
    prepared = erp.prepare("u-liu", OFF, record="SJ00001")
    results = at_once(*[partial(erp.execute, "u-liu", prepared)] * 3)
    errors = [result.code for result in results if isinstance(result, OpstageError)]
    assert errors == [ErrorCode.STATE_CONFLICT] * 2
    assert erp.row("pro_listing", sListingNo="SJ00001").bListed == 0


def test_an_invalid_product_cannot_go_on_sale(erp: DemoErp) -> None:
    prepared = erp.prepare("u-liu", ON, payload={"product": "CP00014"})
    erp.run("u-zhao", "erp.product.invalid", record="CP00014")
    refused(lambda: erp.execute("u-liu", prepared), ErrorCode.BUSINESS_RULE)
    assert erp.row("pro_listing", sListingNo="SJ00014").bListed == 0


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"record": "SJ99999"}, ErrorCode.RECORD_NOT_FOUND),
        ({}, ErrorCode.FIELD_REQUIRED),
        ({"payload": {"product": "没有"}}, ErrorCode.REFERENCE_NOT_FOUND),
        ({"record": "SJ00002", "payload": {"product": "CP00003"}}, ErrorCode.BUSINESS_RULE),
        ({"record": "SJ00002", "payload": {"listed": True}}, ErrorCode.FIELD_UNKNOWN),
    ],
)
def test_a_listing_that_is_not_named_rightly_is_refused(
    erp: DemoErp, item: dict[str, Any], code: ErrorCode
) -> None:
    refused(lambda: erp.prepare("u-liu", OFF, **item), code)


# ------------------------------------------------------------------------------------------- project title
def test_a_title_is_trimmed_composed_counted_and_kept_to_the_character(erp: DemoErp) -> None:
    number = erp.row("dh_project", sId="B001-prj-0001").sProjectNo
    title = "🎉" * 30 + "e\u0301" * 30
    prepared = erp.prepare("u-liu", TITLE, record=number, payload={"title": f"  {title}\u3000"})
    outcome = erp.execute("u-liu", prepared)
    row = erp.row("dh_project", sProjectNo=number)
    assert row.sTitle == "🎉" * 30 + "é" * 30
    assert (row.sModifyPerson, outcome.result["title"]) == ("u-liu", row.sTitle)


@pytest.mark.parametrize("title", ["", "   ", "字" * 61, "两\n行", "\u200b", 5])
def test_what_is_no_title_is_refused_in_both_languages(erp: DemoErp, title: Any) -> None:
    error = refused(
        lambda: erp.prepare("u-liu", TITLE, record="B001-prj-0002", payload={"title": title}),
        ErrorCode.FIELD_INVALID,
    )
    assert error.message("zh") != error.message("en")


def test_a_title_somebody_else_has_changed_meanwhile_is_a_conflict_that_shows_all_three(erp: DemoErp) -> None:
    mine = erp.prepare("u-liu", TITLE, record="B001-prj-0003", payload={"title": "我的标题"})
    erp.run("u-zhao", TITLE, record="B001-prj-0003", payload={"title": "别人的标题"})
    error = refused(lambda: erp.execute("u-liu", mine), ErrorCode.VERSION_CONFLICT)
    (conflict,) = error.conflict
    assert (conflict["now"], conflict["proposed"]) == ("别人的标题", "我的标题")
    assert erp.row("dh_project", sId="B001-prj-0003").sTitle == "别人的标题"


def test_the_same_title_again_and_an_invalid_project_are_refused(erp: DemoErp) -> None:
    title = erp.row("dh_project", sId="B001-prj-0004").sTitle
    refused(
        lambda: erp.prepare("u-liu", TITLE, record="B001-prj-0004", payload={"title": f" {title} "}),
        ErrorCode.BUSINESS_RULE,
    )
    erp.run("u-liu", "erp.digital_human_project.invalid", record="B001-prj-0004")
    refused(
        lambda: erp.prepare("u-liu", TITLE, record="B001-prj-0004", payload={"title": "新"}),
        ErrorCode.STATE_CONFLICT,
    )
