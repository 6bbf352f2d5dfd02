"""Rows that another program's SQL wrote: nobody prepared them, so execution does it all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import OpstageError
from staging.domain.ports import Execution, Prepared
from tests.support.shop_erp import BOSS, CLERK, STRANGER, Shop, part, quote, request_line

NEW = {
    "customer": "上海晨光文具有限公司",
    "title": "外来",
    "parts": [{"name": "a", "quantity": 2, "price": "1.5"}],
}


def _refused(shop: Shop, execution: Execution) -> OpstageError:
    before = shop.snapshot()
    with pytest.raises(OpstageError) as caught:
        shop.execute(execution)
    assert shop.snapshot() == before
    return caught.value


def test_names_are_resolved_defaults_filled_and_totals_worked_out(shop: Shop) -> None:
    outcome = shop.execute(shop.foreign("quote", "create", payload=NEW))
    values = shop.adapter.lookup_record(BOSS, "quote", outcome.result_bill_id)["values"]
    assert (values["customer"], values["total"], values["manager"]) == ("c1", "3.00", "王经理")
    assert values["billNo"] == "BJD202612001"  # by the tenant's date, where it is December already


def test_an_update_by_document_number_changes_the_record(shop: Shop) -> None:
    payload = {"parts": [{"id": "l1", "price": 3}]}
    shop.execute(shop.foreign("quote", "update", target_bill_id="BJD202611001", payload=payload))
    assert str(shop.row(part, "l1")["dAmount"]) == "30.00"
    assert str(shop.row(quote, "q1")["dTotal"]) == "50.00"


def test_a_generate_takes_what_is_left(shop: Shop) -> None:
    ref = {"formId": "request", "record": "QGD0001"}
    shop.execute(shop.foreign("order", "generate", source_ref=ref))
    assert str(shop.row(request_line, "rl2")["dOrdered"]) == "50.000"


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({**NEW, "parts": []}, E.FIELD_INVALID),
        ({**NEW, "total": "1"}, E.FIELD_NOT_WRITABLE),
        ({**NEW, "sBrandsId": "b2"}, E.FIELD_UNKNOWN),
        ({**NEW, "customer": "外地公司"}, E.REFERENCE_NOT_FOUND),
        ({**NEW, "customer": "北京同名公司"}, E.REFERENCE_AMBIGUOUS),
        ({**NEW, "title": "画册"}, E.POSSIBLE_DUPLICATE),
        ({}, E.FIELD_REQUIRED),
    ],
)
def test_what_prepare_refuses_is_not_executed(shop: Shop, payload: dict[str, Any], code: E) -> None:
    assert _refused(shop, shop.foreign("quote", "create", payload=payload)).code == code


def test_permission_tenant_and_state_are_checked(shop: Shop) -> None:
    examine = {"target_bill_id": "q1"}
    assert _refused(shop, shop.foreign("quote", "examine", actor=CLERK, **examine)).code == E.FORBIDDEN
    assert (
        _refused(shop, shop.foreign("quote", "examine", actor=STRANGER, **examine)).code == E.RECORD_NOT_FOUND
    )
    assert _refused(shop, shop.foreign("quote", "examine", target_bill_id="q2")).code == E.STATE_CONFLICT


def test_a_row_made_for_another_version_is_refused(shop: Shop) -> None:
    what: dict[str, Any] = {"target_bill_id": "q1", "payload": {"title": "x"}}
    version = shop.prepare("quote", "update", record="q1", payload={"title": "x"}).target_version
    other = shop.foreign("quote", "update", target_version="sha256:0", **what)
    assert _refused(shop, other).code == E.VERSION_CONFLICT
    shop.execute(shop.foreign("quote", "update", target_version=version, **what))
    assert shop.row(quote, "q1")["sTitle"] == "x"


def test_a_command_is_checked_like_a_form(shop: Shop) -> None:
    assert _refused(shop, shop.foreign("quote", "rename", target_bill_id="q1")).code == E.FIELD_REQUIRED
    shop.execute(shop.foreign("quote", "rename", target_bill_id="q1", payload={"title": "y"}))
    assert shop.row(quote, "q1")["sTitle"] == "y"


def _unsealed(shop: Shop, prepared: Prepared, **more: Any) -> Execution:
    return replace(shop.execution(prepared, **more), prepared=False)


def test_what_was_confirmed_here_is_executed_without_a_seal_as_well(shop: Shop) -> None:
    """No OPSTAGE_SEAL_KEY: totals and what the system fills in are in the row, and are worked out anew."""
    for form, op, what in (
        ("quote", "create", {"payload": NEW}),
        ("quote", "update", {"record": "BJD202611001", "payload": {"parts": [{"id": "l1", "price": 3}]}}),
        ("order", "generate", {"source_ref": {"formId": "request", "record": "QGD0001"}}),
        ("quote", "examine", {"record": "BJD202611001"}),
    ):
        prepared = shop.prepare(form, op, **what)
        assert shop.execute(_unsealed(shop, prepared)).result_bill_id
    assert str(shop.row(quote, "q1")["dTotal"]) == "50.00"
    assert str(shop.row(request_line, "rl2")["dOrdered"]) == "50.000"


def test_without_a_seal_what_is_worked_out_has_to_be_what_was_shown(shop: Shop) -> None:
    prepared = shop.prepare("quote", "create", payload=NEW)
    other = _unsealed(shop, prepared, payload={**prepared.payload, "total": "2.99"})
    assert _refused(shop, other).code == E.VERSION_CONFLICT
    prepared = shop.prepare("quote", "update", record="q1", payload={"title": "新"})
    shop.change(quote, "q1", sTitle="同事改的")
    assert _refused(shop, _unsealed(shop, prepared)).code == E.VERSION_CONFLICT
