"""The demo's catalogue fits its tables, and its forms do what the domain asks: approval, manual work, write-back."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.identity import Actor
from tests.databases import KINDS
from tests.support.demo_erp import FIRST, DemoErp, demo_erp, refused
from workers.erp.checks.cross import cross_check

FORMS = {
    *(
        "quotation",
        "purchase_requisition",
        "purchase_order",
        "outsource_order",
        "stock_inbound",
        "stock_outbound",
    ),
    *("sales_order", "stock_adjustment", "product_listing", "digital_human_project"),
    *("customer", "supplier", "product", "warehouse", "stock"),
}


@pytest.fixture(scope="module", params=KINDS)
def erp(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoErp]:
    with demo_erp(request.param, tmp_path_factory.mktemp("demo")) as made:
        yield made


def test_the_catalogue_is_sound_and_fits_the_live_tables(erp: DemoErp) -> None:
    assert {form.id for form in erp.adapter.catalogue.forms} == FORMS
    assert cross_check(erp.adapter.catalogue) == []
    assert list(erp.adapter.check()) == []


def test_a_quotation_with_parts_and_tiers_adds_up_its_parts_only(erp: DemoErp) -> None:
    tiers = [{"quantity": "1000", "price": "2.5"}, {"quantity": "5000", "price": "1.9999"}]
    parts = [
        {"name": "面纸", "quantity": "1000", "price": "2.5", "tiers": tiers},
        {"name": "灰板", "quantity": "1000", "price": "0.33335"[:6]},
    ]
    payload = {"customer": "KH0003", "title": "中秋礼盒", "parts": parts}
    outcome = erp.run("u-lin", "erp.quotation.create", payload=payload)
    row = erp.row("quo_quotationmaster", sId=outcome.result_bill_id)
    assert row.dTotalAmount == Decimal("2833.30")
    assert row.sContact == erp.row("elecustomer", sCustomerNo="KH0003").sContact
    first = erp.row("quo_quotationpart", sParentId=row.sId, iOrder=1)
    assert erp.row("quo_quotationtier", sParentId=first.sId, iOrder=2).dAmount == Decimal("9999.50")
    assert erp.inconsistencies() == []


@pytest.mark.parametrize(("price", "approval"), [("500", False), ("500.01", True)])
def test_large_purchase_orders_need_a_second_person_to_examine(
    erp: DemoErp, price: str, approval: bool
) -> None:
    payload = {"supplier": "GY0001", "lines": [{"product": "CP00001", "quantity": "100", "price": price}]}
    made = erp.run("u-chen", "erp.purchase_order.create", payload=payload)
    examine = erp.prepare("u-chen", "erp.purchase_order.examine", record=made.result_bill_id)
    assert (examine.route.requires_approval, examine.route.auto_execute) == (approval, True)
    route = examine.route
    assert erp.adapter.may_approve(Actor(FIRST, "u-qian"), route)
    assert not erp.adapter.may_approve(Actor(FIRST, "u-chen"), route)


def test_a_new_supplier_always_needs_approval_and_an_outsource_order_is_completed_by_hand(
    erp: DemoErp,
) -> None:
    assert erp.adapter.route("supplier", "create").requires_approval
    assert not erp.adapter.route("supplier", "update").requires_approval
    assert not erp.adapter.route("outsource_order", "create").auto_execute
    assert erp.adapter.route("quotation", "create").auto_execute


@pytest.mark.parametrize(
    ("form", "op"),
    [
        *(("sales_order", "update"), ("sales_order", "invalid"), ("stock_adjustment", "update")),
        *(("stock", "create"), ("stock", "update"), ("customer", "delete"), ("product_listing", "invalid")),
    ],
)
def test_operations_that_are_not_listed_are_denied_even_to_the_manager(
    erp: DemoErp, form: str, op: str
) -> None:
    refused(lambda: erp.prepare("u-zhao", f"erp.{form}.{op}", record="x"), ErrorCode.FORBIDDEN)


def test_from_requisition_to_stock_every_step_is_written_back(erp: DemoErp) -> None:
    before = erp.level("CP00051", erp_warehouse(erp, "CP00051")).quantity
    lines = [
        {"product": "CP00051", "quantity": "100"},
        {"product": "CP00052", "quantity": "40", "price": "3"},
    ]
    requisition = erp.run(
        "u-chen", "erp.purchase_requisition.create", payload={"department": "生产部", "lines": lines}
    )
    source = {"formId": "purchase_requisition", "record": requisition.result["number"]}
    refused(lambda: generate_order(erp, source), ErrorCode.STATE_CONFLICT)  # not examined yet
    erp.run("u-chen", "erp.purchase_requisition.examine", record=requisition.result_bill_id)
    order = generate_order(erp, source)
    refused(lambda: generate_order(erp, source), ErrorCode.BUSINESS_RULE)  # nothing left
    refused(
        lambda: erp.run(
            "u-chen", "erp.purchase_requisition.cancelExamine", record=requisition.result_bill_id
        ),
        ErrorCode.STATE_CONFLICT,
    )
    erp.run("u-zhao", "erp.purchase_order.examine", record=order.result_bill_id)
    line = erp.row("pur_orderline", sParentId=order.result_bill_id, iOrder=1)
    part = {
        "formId": "purchase_order",
        "record": order.result_bill_id,
        "lines": [{"id": line.sId, "quantity": "60"}],
    }
    inbound = erp.run("u-wang", "erp.stock_inbound.generate", source_ref=part)
    assert erp.row("pur_orderline", sId=line.sId).dReceivedQuantity == 60
    assert erp.row("sto_inbound", sId=inbound.result_bill_id).sSupplierId == "B001-sup-0002"
    erp.run("u-wang", "erp.stock_inbound.examine", record=inbound.result_bill_id)
    assert erp.level("CP00051", erp_warehouse(erp, "CP00051")).quantity == before + 60
    assert erp.inconsistencies() == []


def generate_order(erp: DemoErp, source: dict[str, Any]) -> Any:
    return erp.run("u-chen", "erp.purchase_order.generate", source_ref=source, payload={"supplier": "GY0002"})


def erp_warehouse(erp: DemoErp, product_no: str) -> str:
    """Number of the warehouse where the product belongs."""
    room = erp.row("eleproduct", sProductNo=product_no).sWarehouseId
    return str(erp.row("elewarehouse", sId=room).sWarehouseNo)


def test_new_numbers_follow_those_that_were_seeded(erp: DemoErp) -> None:
    outcome = erp.run("u-zhao", "erp.customer.create", payload={"name": "昆山新客户有限公司"})
    assert outcome.result["number"] == "KH0061"
    assert (
        erp.run("u-zhao", "erp.warehouse.create", payload={"name": "样品仓", "type": "finished"}).result[
            "number"
        ]
        == "CK06"
    )
