"""Sales orders of the demo ERP: priced from the product, reserved in stock, cancelled once, never over-promised."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from sqlalchemy import update

from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError, Refused, ValidationFailed
from tests.databases import KINDS
from tests.support.demo_erp import SECOND, DemoErp, at_once, demo_erp, refused
from workers.erp.demo.schema import products
from workers.erp.demo.seed.masters import AMBIGUOUS_CUSTOMER

CREATE, CANCEL = "erp.sales_order.create", "erp.sales_order.cancel"
CUSTOMER = "KH0003"


@pytest.fixture(scope="module", params=KINDS)
def erp(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoErp]:
    with demo_erp(request.param, tmp_path_factory.mktemp("demo")) as made:
        yield made


def order(*lines: tuple[str, str], **header: Any) -> dict[str, Any]:
    return {"customer": CUSTOMER, "lines": [{"product": p, "quantity": q} for p, q in lines], **header}


def free(erp: DemoErp, product: str) -> Decimal:
    return erp.level(product).free


def test_lines_are_merged_sorted_priced_and_reserved(erp: DemoErp) -> None:
    before = erp.level("CP00001"), erp.level("CP00002")
    payload = order(("CP00002", "40"), ("星空系列精装礼盒", "60"), ("CP00001", "40.5"), customerPoNo="PO-1")
    prepared = erp.prepare("u-lin", CREATE, payload=payload)
    assert erp.level("CP00001") == before[0]  # nothing is written by preparing
    lines = [
        {change.field: change.new for change in line.fields} for line in prepared.preview.children[0].lines
    ]
    # 100.5 of CP00001 reach the step of 100: 18.5 * 0.95 = 17.575
    assert [Decimal(line["quantity"]) for line in lines] == [Decimal("100.5"), Decimal(40)]
    assert [Decimal(line["price"]) for line in lines] == [Decimal("17.5750"), Decimal("12.4")]
    assert [Decimal(line["amount"]) for line in lines] == [Decimal("1766.29"), Decimal("496.00")]
    assert Decimal(prepared.preview.totals[0].new) == Decimal("2262.29")
    assert {Decimal(v) for k, v in prepared.pins.items() if k.endswith("listPrice")} == {
        Decimal("18.5"),
        Decimal("12.4"),
    }
    outcome = erp.execute("u-lin", prepared)
    row = erp.row("sal_order", sId=outcome.result_bill_id)
    assert row.dTotalAmount == Decimal("2262.29")
    assert (row.sMakePerson, row.bCheck, row.bInvalid, row.sCustomerPoNo) == ("u-lin", 0, 0, "PO-1")
    assert row.sBillNo in outcome.message["zh"]
    assert erp.level("CP00001").reserved == before[0].reserved + Decimal("100.5")
    assert erp.level("CP00001").quantity == before[0].quantity
    assert erp.level("CP00002").reserved == before[1].reserved + 40
    assert erp.inconsistencies() == []


def test_prepared_input_prepares_to_the_same_again(erp: DemoErp) -> None:
    once = erp.prepare("u-lin", CREATE, payload=order(("CP00005", "3"), ("CP00004", "2")))
    twice = erp.prepare("u-lin", CREATE, payload=once.payload)
    assert (twice.payload, twice.pins) == (once.payload, once.pins)


def test_a_price_that_changed_after_the_preview_is_a_conflict_that_shows_both(erp: DemoErp) -> None:
    prepared = erp.prepare("u-lin", CREATE, payload=order(("CP00008", "5")))
    reserved = erp.level("CP00008").reserved
    with erp.engine.begin() as connection:
        found = products.product
        connection.execute(
            update(found)
            .where(found.c.sBrandsId == "B001", found.c.sProductNo == "CP00008")
            .values(dPrice=Decimal("0.9100"))
        )
    error = refused(lambda: erp.execute("u-lin", prepared), ErrorCode.VERSION_CONFLICT)
    assert Decimal(error.conflict[0]["now"]) == Decimal("0.91")
    assert Decimal(error.conflict[0]["seen"]) == Decimal("0.85")
    assert erp.level("CP00008").reserved == reserved


def test_what_is_not_enough_is_refused_at_prepare_and_at_execution(erp: DemoErp) -> None:
    left = free(erp, "CP00010")
    error = refused(
        lambda: erp.prepare("u-lin", CREATE, payload=order(("CP00010", str(left + 1)))),
        ErrorCode.BUSINESS_RULE,
    )
    assert "说明书" in error.message("en")
    first = erp.prepare("u-lin", CREATE, payload=order(("CP00010", str(left))))
    second = erp.prepare("u-lin", CREATE, payload=order(("CP00010", "1")))
    erp.execute("u-lin", first)
    refused(lambda: erp.execute("u-lin", second), ErrorCode.BUSINESS_RULE)
    assert free(erp, "CP00010") == 0
    assert erp.inconsistencies() == []


def test_products_off_sale_cannot_be_ordered(erp: DemoErp) -> None:
    error = refused(
        lambda: erp.prepare("u-lin", CREATE, payload=order(("CP00007", "1"), ("CP00001", "1"))),
        ErrorCode.BUSINESS_RULE,
    )
    assert "CP00007" in error.message("zh")
    assert "CP00001" not in error.message("zh")


def test_every_bad_field_is_reported_and_a_shared_name_lists_its_candidates(erp: DemoErp) -> None:
    payload = {
        "customer": AMBIGUOUS_CUSTOMER,
        "lines": [{"product": "没有这个", "quantity": "1"}, {"product": "CP00001", "quantity": "0"}],
        "deliveryDate": "30.11.2026",
    }
    with pytest.raises(ValidationFailed) as caught:
        erp.prepare("u-lin", CREATE, payload=payload)
    problems = {problem.field: problem.code for problem in caught.value.details}
    assert problems == {
        "customer": ErrorCode.REFERENCE_AMBIGUOUS,
        "lines[0].product": ErrorCode.REFERENCE_NOT_FOUND,
        "lines[1].quantity": ErrorCode.FIELD_INVALID,
        "deliveryDate": ErrorCode.FIELD_INVALID,
    }
    assert {c["number"] for c in caught.value.candidates if c["field"] == "customer"} == {"KH0001", "KH0002"}


@pytest.mark.parametrize(
    "name", ["price", "listPrice", "totalAmount", "billNo", "sBrandsId", "lines[0].price"]
)
def test_prices_and_system_values_are_no_input(erp: DemoErp, name: str) -> None:
    payload = order(("CP00001", "1"))
    target = payload["lines"][0] if name.startswith("lines") else payload
    target[name.rpartition(".")[2]] = "1"
    refused(lambda: erp.prepare("u-lin", CREATE, payload=payload), ErrorCode.FIELD_UNKNOWN)


def test_only_those_granted_may_order_and_other_tenants_see_nothing(erp: DemoErp) -> None:
    refused(lambda: erp.prepare("u-wang", CREATE, payload=order(("CP00001", "1"))), ErrorCode.FORBIDDEN)
    outcome = erp.run("u-lin", CREATE, payload=order(("CP00001", "1")))
    refused(
        lambda: erp.prepare("u-he", CANCEL, tenant=SECOND, record=outcome.result_bill_id),
        ErrorCode.RECORD_NOT_FOUND,
    )


def test_the_same_customer_order_twice_is_probably_a_mistake(erp: DemoErp) -> None:
    made = erp.run("u-lin", CREATE, payload=order(("CP00011", "1"), customerPoNo="PO-TWICE"))
    again = order(("CP00012", "1"), customerPoNo="PO-TWICE")
    error = refused(lambda: erp.prepare("u-lin", CREATE, payload=again), ErrorCode.POSSIBLE_DUPLICATE)
    assert error.candidates[0]["id"] == made.result_bill_id
    allowed = erp.prepare("u-lin", CREATE, payload=again, allow_duplicate=True)
    erp.execute("u-lin", allowed, allow_duplicate=True)


def test_a_foreign_row_with_names_is_priced_when_it_is_executed(erp: DemoErp) -> None:
    outcome = erp.foreign("u-lin", CREATE, order(("国风系列台历", "2")))
    row = erp.row("sal_order", sId=outcome.result_bill_id)
    line = erp.row("sal_orderline", sParentId=row.sId)
    assert line.dAmount == line.dPrice * 2 == row.dTotalAmount
    assert row.sAddress == erp.row("elecustomer", sCustomerNo=CUSTOMER).sAddress


def test_cancelling_frees_what_was_reserved_and_works_once(erp: DemoErp) -> None:
    before = erp.level("CP00015")
    made = erp.run("u-lin", CREATE, payload=order(("CP00015", "7")))
    number = str(made.result["number"])
    prepared = erp.prepare("u-lin", CANCEL, record=number, payload={"reason": "客户改期"})
    shown = {change.field: (change.old, change.new) for change in prepared.preview.fields}
    assert shown == {"invalid": (False, True), "cancelReason": (None, "客户改期")}
    assert [line.action for line in prepared.preview.children[0].lines] == ["keep"]
    erp.execute("u-lin", prepared)
    assert erp.level("CP00015") == before
    row = erp.row("sal_order", sBillNo=number)
    assert (row.bInvalid, row.sInvalidPerson, row.sCancelReason) == (1, "u-lin", "客户改期")
    refused(lambda: erp.execute("u-lin", prepared), ErrorCode.STATE_CONFLICT)
    refused(lambda: erp.prepare("u-lin", CANCEL, record=number), ErrorCode.STATE_CONFLICT)
    assert erp.level("CP00015") == before
    assert erp.inconsistencies() == []


def test_what_is_on_an_outbound_cannot_be_cancelled_until_that_is_gone(erp: DemoErp) -> None:
    made = erp.run("u-lin", CREATE, payload=order(("CP00016", "5")))
    erp.run("u-zhao", "erp.sales_order.examine", record=made.result_bill_id)
    source = {"formId": "sales_order", "record": made.result["number"]}
    outbound = erp.run("u-wang", "erp.stock_outbound.generate", source_ref=source)
    error = refused(
        lambda: erp.prepare("u-lin", CANCEL, record=made.result_bill_id), ErrorCode.STATE_CONFLICT
    )
    assert str(outbound.result["number"]) in error.message("en")
    erp.run("u-wang", "erp.stock_outbound.invalid", record=outbound.result_bill_id)
    erp.run("u-lin", CANCEL, record=made.result_bill_id)
    assert erp.inconsistencies() == []


def test_sending_an_order_takes_the_stock_it_had_reserved_and_no_more(erp: DemoErp) -> None:
    before = erp.level("CP00018")
    made = erp.run("u-lin", CREATE, payload=order(("CP00018", "6")))
    erp.run("u-zhao", "erp.sales_order.examine", record=made.result_bill_id)
    source = {"formId": "sales_order", "record": made.result_bill_id}
    outbound = erp.run("u-wang", "erp.stock_outbound.generate", source_ref=source)
    erp.run("u-wang", "erp.stock_outbound.examine", record=outbound.result_bill_id)
    after = erp.level("CP00018")
    assert (after.quantity, after.reserved) == (before.quantity - 6, before.reserved)
    erp.run("u-wang", "erp.stock_outbound.cancelExamine", record=outbound.result_bill_id)
    assert erp.level("CP00018").reserved == before.reserved + 6
    assert erp.inconsistencies() == []


def test_an_outbound_sends_what_was_ordered_from_where_it_is_reserved(erp: DemoErp) -> None:
    made = erp.run("u-lin", CREATE, payload=order(("CP00017", "5")))
    erp.run("u-zhao", "erp.sales_order.examine", record=made.result_bill_id)
    source = {"formId": "sales_order", "record": made.result_bill_id}
    for other in ({"product": "CP00001"}, {"warehouse": "CK04"}):
        payload = {"lines": [{"quantity": "5", **other}]}
        generate = partial(
            erp.prepare, "u-wang", "erp.stock_outbound.generate", source_ref=source, payload=payload
        )
        error = refused(generate, ErrorCode.FIELD_INVALID)
        assert error.details[0].field == f"lines[0].{next(iter(other))}"
    outbound = erp.run("u-wang", "erp.stock_outbound.generate", source_ref=source)
    line = erp.row("sto_outboundline", sParentId=outbound.result_bill_id)
    change = {"lines": [{"id": line.sId, "warehouse": "CK04"}]}
    refused(
        lambda: erp.prepare(
            "u-wang", "erp.stock_outbound.update", record=outbound.result_bill_id, payload=change
        ),
        ErrorCode.FIELD_NOT_WRITABLE,
    )


def test_other_outbounds_leave_what_is_reserved(erp: DemoErp) -> None:
    made = erp.run("u-lin", CREATE, payload=order(("CP00019", str(free(erp, "CP00019")))))
    line = {"product": "CP00019", "warehouse": "CK03", "quantity": "1"}
    outbound = erp.run("u-wang", "erp.stock_outbound.create", payload={"type": "other", "lines": [line]})
    refused(
        lambda: erp.run("u-wang", "erp.stock_outbound.examine", record=outbound.result_bill_id),
        ErrorCode.BUSINESS_RULE,
    )
    erp.run("u-lin", CANCEL, record=made.result_bill_id)
    erp.run("u-wang", "erp.stock_outbound.examine", record=outbound.result_bill_id)
    assert erp.inconsistencies() == []


def test_orders_that_race_for_the_last_pieces_never_promise_more_than_there_is(erp: DemoErp) -> None:
    left = free(erp, "CP00022")
    share = (left / 3).quantize(Decimal("0.001"))
    other = free(erp, "CP00023")
    # Lines in opposite order: without one order of locks some of these would deadlock.
    prepared = [
        erp.prepare("u-lin", CREATE, payload=order(*lines))
        for lines in (
            [("CP00022", str(share)), ("CP00023", "1")],
            [("CP00023", "1"), ("CP00022", str(share))],
        )
        * 3
    ]
    results = at_once(*(partial(erp.execute, "u-lin", p) for p in prepared))
    kinds = [type(result) for result in results]
    assert kinds.count(Refused) == 6 - (3 if share * 3 <= left else 2), results
    done = 6 - kinds.count(Refused)
    assert free(erp, "CP00022") == left - done * share >= 0
    assert free(erp, "CP00023") == other - done
    assert erp.inconsistencies() == []


def test_two_cancellations_at_once_free_the_stock_once(erp: DemoErp) -> None:
    before = erp.level("CP00025")
    made = erp.run("u-lin", CREATE, payload=order(("CP00025", "4")))
    prepared = erp.prepare("u-lin", CANCEL, record=made.result_bill_id)
    results = at_once(*[partial(erp.execute, "u-lin", prepared)] * 4)
    errors = [result for result in results if isinstance(result, OpstageError)]
    assert [error.code for error in errors] == [ErrorCode.STATE_CONFLICT] * 3
    assert erp.level("CP00025") == before


def test_a_cancellation_and_an_outbound_at_once_cannot_both_win(erp: DemoErp) -> None:
    for _ in range(3):
        made = erp.run("u-lin", CREATE, payload=order(("CP00026", "2")))
        erp.run("u-zhao", "erp.sales_order.examine", record=made.result_bill_id)
        cancel = erp.prepare("u-lin", CANCEL, record=made.result_bill_id)
        source = {"formId": "sales_order", "record": made.result_bill_id}
        generate = erp.prepare("u-wang", "erp.stock_outbound.generate", source_ref=source)
        results = at_once(partial(erp.execute, "u-lin", cancel), partial(erp.execute, "u-wang", generate))
        errors = [result for result in results if isinstance(result, OpstageError)]
        assert [error.code for error in errors] in ([ErrorCode.STATE_CONFLICT], [ErrorCode.VERSION_CONFLICT])
        assert erp.inconsistencies() == []
