"""References by id, document number or exact name: within the tenant, never a guess."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import event

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import OpstageError
from tests.support.shop_erp import BOSS, OTHER, STRANGER, Shop, customer, grant, product, quote

PARTS = [{"name": "封面", "quantity": 1, "price": 1}]


def _customer_of(shop: Shop, given: str) -> str:
    payload = {"customer": given, "title": "新", "parts": PARTS}
    return str(shop.prepare("quote", "create", payload=payload).payload["customer"])


@pytest.mark.parametrize("given", ["c1", "KH0001", "上海晨光文具有限公司"])
def test_a_reference_is_given_by_id_number_or_name(shop: Shop, given: str) -> None:
    assert _customer_of(shop, given) == "c1"


def test_case_is_ignored_only_if_nothing_matches_exactly_and_one_record_is_left(shop: Shop) -> None:
    assert _customer_of(shop, "acme PAPER") == "c4"
    shop.add(customer, sId="c6", sNo="KH0006", sName="ACME PAPER")
    assert _customer_of(shop, "ACME PAPER") == "c6"
    assert _refused(shop, "acme paper").code == E.REFERENCE_AMBIGUOUS


def test_an_id_wins_over_a_name_that_looks_like_it(shop: Shop) -> None:
    shop.add(customer, sId="c7", sNo="KH0007", sName="c1")
    assert _customer_of(shop, "c1") == "c1"


def test_an_ambiguous_name_lists_the_candidates(shop: Shop) -> None:
    error = _refused(shop, "北京同名公司")
    assert error.code == E.REFERENCE_AMBIGUOUS
    assert [dict(c) for c in error.candidates] == [
        {"field": "customer", "id": "c2", "number": "KH0002", "name": "北京同名公司"},
        {"field": "customer", "id": "c3", "number": "KH0003", "name": "北京同名公司"},
    ]
    assert _customer_of(shop, "KH0003") == "c3"


def test_what_is_not_found_comes_with_a_few_that_are_near(shop: Shop) -> None:
    error = _refused(shop, "上海晨光文具股份有限公司")
    assert error.code == E.REFERENCE_NOT_FOUND
    assert error.candidates[0]["id"] == "c1"
    assert _refused(shop, "100%_\\").candidates == ()


@pytest.mark.parametrize("given", ["c9", "KH0009", "外地公司", "上海晨光文具有限公司 ", "", " "])
def test_another_tenants_record_or_a_near_miss_is_not_found(shop: Shop, given: str) -> None:
    assert _refused(shop, given).code in (E.REFERENCE_NOT_FOUND, E.FIELD_REQUIRED)
    assert "c9" not in {c["id"] for c in _refused(shop, given).candidates}


def test_an_invalid_record_cannot_be_chosen(shop: Shop) -> None:
    for given in ("c5", "KH0005", "已停业公司"):
        error = _refused(shop, given)
        assert error.code == E.REFERENCE_NOT_FOUND
        assert "作废" in error.message("zh")


def test_a_payload_full_of_mistakes_is_answered_in_time(shop: Shop) -> None:
    parts = [{"name": str(n), "quantity": 1, "product": f"宣纸{n}", f"nix{n}": 1} for n in range(400)]
    begun = time.monotonic()
    error = shop.refusal(
        "quote", "create", payload={"customer": "x", **{f"feld{n}": 1 for n in range(2000)}, "parts": parts}
    )
    assert time.monotonic() - begun < 5
    assert len(error.details) == 100


def test_references_of_lines_are_reported_by_path(shop: Shop) -> None:
    parts = [
        {"name": "a", "quantity": 1, "product": "铜版纸"},
        {"name": "b", "quantity": 1, "product": "宣纸"},
    ]
    codes = shop.codes("quote", "create", payload={"customer": "c8", "title": "新", "parts": parts})
    assert codes == {"customer": E.REFERENCE_NOT_FOUND, "parts[1].product": E.REFERENCE_NOT_FOUND}


def test_a_record_that_became_invalid_since_is_refused_at_confirm_and_at_execution(shop: Shop) -> None:
    parts = [{"name": "a", "quantity": 1, "product": "p1"}]
    prepared = shop.prepare("quote", "create", payload={"customer": "c1", "title": "新", "parts": parts})
    shop.change(product, "p1", bInvalid=1)
    before = shop.snapshot()
    with pytest.raises(Exception, match="reference_not_found"):
        shop.adapter.recheck(BOSS, prepared)
    with pytest.raises(Exception, match="reference_not_found"):
        shop.execute(shop.execution(prepared))
    assert shop.snapshot() == before


def test_of_a_new_record_that_refers_to_none_only_the_grants_are_read_at_confirm(shop: Shop) -> None:
    read: list[str] = []
    event.listen(shop.engine, "before_cursor_execute", lambda *said: read.append(said[2]))
    prepared = shop.prepare("customer", "create", payload={"name": "新客户"})
    read.clear()
    shop.adapter.recheck(BOSS, prepared)
    selects = [sql for sql in read if sql.startswith("SELECT")]
    assert len(selects) == 1
    assert grant.name in selects[0]


def test_defaults_are_copied_from_the_chosen_reference_and_onward(shop: Shop) -> None:
    payload = shop.prepare(
        "quote", "create", payload={"customer": "c1", "title": "新", "parts": PARTS}
    ).payload
    assert (payload["address"], payload["region"], payload["manager"]) == ("漕河泾1号", "r1", "王经理")
    given = {"customer": "c1", "title": "新", "parts": PARTS, "address": "自提"}
    assert shop.prepare("quote", "create", payload=given).payload["address"] == "自提"
    other = shop.prepare("quote", "create", payload={"customer": "c4", "title": "新", "parts": PARTS}).payload
    assert "address" not in other
    assert "manager" not in other


def test_today_is_the_tenants_and_the_maker_is_the_actor(shop: Shop) -> None:
    payload = shop.prepare(
        "quote", "create", payload={"customer": "c1", "title": "新", "parts": PARTS}
    ).payload
    assert payload["quoteDate"] == "2026-12-01"
    assert payload["madeBy"] == "boss"


def test_the_other_tenant_has_its_own_records(shop: Shop) -> None:
    payload = {"customer": "外地公司", "title": "新", "parts": PARTS}
    prepared = shop.prepare("quote", "create", actor=STRANGER, payload=payload)
    assert prepared.payload["customer"] == "c9"
    outcome = shop.execute(shop.execution(prepared, actor=STRANGER))
    assert shop.row(quote, outcome.result_bill_id)["sBrandsId"] == OTHER.brands_id


def _refused(shop: Shop, given: str) -> OpstageError:
    return shop.refusal("quote", "create", payload={"customer": given, "title": "新", "parts": PARTS})
