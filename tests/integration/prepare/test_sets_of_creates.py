"""Creates of a form that come together: checked each, written together, and whatever is wrong with one is found."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event, select

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor
from staging.domain.ports import Execution
from tests.support.shop_erp import BOSS, CLERK, TENANT, Shop, customer, grant, product, quote, request

BUYER = Actor(TENANT, "buyer")


def _request(shop: Shop, department: str, thing: str = "p1", actor: Actor = BOSS) -> Execution:
    lines = [{"product": thing, "quantity": 1}, {"product": "p2", "quantity": 2}]
    prepared = shop.prepare("request", "create", payload={"department": department, "lines": lines})
    return shop.execution(prepared, actor)


def _quote(shop: Shop, title: str, **more: Any) -> Execution:
    payload = {"customer": "c1", "title": title, "parts": [{"name": "a", "quantity": 1, "price": 1}]}
    return shop.execution(shop.prepare("quote", "create", payload=payload, **more), **more)


def _departments(shop: Shop) -> list[tuple[str, str]]:
    with shop.engine.connect() as connection:
        found = select(request.c.sBillNo, request.c.sDepartment).order_by(request.c.sBillNo)
        return [(row[0], row[1]) for row in connection.execute(found)][2:]


def _refusal(shop: Shop, *executions: Execution) -> OpstageError:
    before = shop.snapshot()
    with pytest.raises(OpstageError) as caught:
        shop.execute_all(*executions)
    assert shop.snapshot() == before
    return caught.value


@contextmanager
def _statements(shop: Shop) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(shop.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(shop.engine, "before_cursor_execute", note)


def test_they_are_numbered_in_order_and_each_has_its_own_outcome(shop: Shop) -> None:
    outcomes = shop.execute_all(*[_request(shop, d) for d in ("生产部", "仓库", "质检")])
    assert [o.result["number"] for o in outcomes] == ["QGD0003", "QGD0004", "QGD0005"]
    assert _departments(shop) == [("QGD0003", "生产部"), ("QGD0004", "仓库"), ("QGD0005", "质检")]
    assert [shop.row(request, o.result_bill_id)["sDepartment"] for o in outcomes] == [
        "生产部",
        "仓库",
        "质检",
    ]


def test_what_all_of_them_refer_to_is_looked_up_once(shop: Shop) -> None:
    some = [_request(shop, f"d{n}", f"p{n % 2 + 1}") for n in range(8)]
    with _statements(shop) as seen:
        shop.execute_all(*some)
    assert len([s for s in seen if s.lstrip().startswith("SELECT") and "g_product" in s]) == 1
    assert len([s for s in seen if "g_request_line" in s]) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_gone_meanwhile_refuses_the_set_and_only_the_one_that_needs_it(
    shop: Shop, place: int
) -> None:
    shop.add(product, sId="px", sName="临时")
    some = [_request(shop, f"d{n}", "px" if n == place else "p1") for n in range(3)]
    with shop.engine.begin() as connection:
        connection.execute(product.delete().where(product.c.sId == "px"))
    assert {p.code for p in _refusal(shop, *some).details} == {E.REFERENCE_NOT_FOUND}
    others = [one for n, one in enumerate(some) if n != place]
    assert len(shop.execute_all(*others)) == 2


@pytest.mark.parametrize("place", [0, 2])
def test_of_two_actors_the_one_without_permission_refuses_the_set(shop: Shop, place: int) -> None:
    shop.add(grant, sUserId="buyer", sFormId="request", sOpType="create")
    allowed = [_request(shop, f"d{n}", actor=BUYER if n % 2 else BOSS) for n in range(3)]
    without = list(allowed)
    without[place] = _request(shop, "x", actor=CLERK)
    assert _refusal(shop, *without).code is E.FORBIDDEN
    assert len(shop.execute_all(*allowed)) == 3


def test_one_that_would_be_worked_out_differently_now_refuses_the_set(shop: Shop) -> None:
    some = [_customer(shop, f"客户{n}") for n in range(3)]
    altered = replace(some[1], payload={**some[1].payload, "name": " "})
    assert {p.code for p in _refusal(shop, some[0], altered, some[2]).details} == {E.FIELD_REQUIRED}
    stale = replace(some[1], target_version="another")
    assert _refusal(shop, some[0], stale, some[2]).code is E.VERSION_CONFLICT


def _customer(shop: Shop, name: str) -> Execution:
    return shop.execution(shop.prepare("customer", "create", payload={"name": name, "region": "r1"}))


def test_two_alike_in_the_natural_key_are_treated_as_one_after_the_other(shop: Shop) -> None:
    refusal = _refusal(shop, _quote(shop, "新"), _quote(shop, "另"), _quote(shop, "新"))
    assert refusal.code is E.POSSIBLE_DUPLICATE
    outcomes = shop.execute_all(
        _quote(shop, "新"), _quote(shop, "另"), _quote(shop, "新", allow_duplicate=True)
    )
    titles = [shop.row(quote, o.result_bill_id)["sTitle"] for o in outcomes]
    assert titles == ["新", "另", "新"]
    assert [o.result["number"] for o in outcomes] == [f"BJD20261200{n}" for n in (1, 2, 3)]


def test_other_kinds_between_them_are_done_in_their_turn(shop: Shop) -> None:
    update = shop.execution(shop.prepare("customer", "update", record="c1", payload={"address": "新址"}))
    outcomes = shop.execute_all(
        _customer(shop, "甲"),
        _customer(shop, "乙"),
        update,
        _customer(shop, "丙"),
        _request(shop, "丁"),
    )
    assert [o.result.get("number") for o in outcomes] == ["KH0006", "KH0007", "KH0001", "KH0008", "QGD0003"]
    assert shop.row(customer, "c1")["sAddress"] == "新址"


def test_rows_of_other_programs_are_worked_out_one_by_one(shop: Shop) -> None:
    foreign = [
        shop.foreign("customer", "create", payload={"name": n, "region": "华东"}) for n in ("甲", "乙")
    ]
    outcomes = shop.execute_all(foreign[0], _customer(shop, "丙"), foreign[1])
    assert [o.result["number"] for o in outcomes] == ["KH0006", "KH0007", "KH0008"]
    assert {shop.row(customer, o.result_bill_id)["sRegionId"] for o in outcomes} == {"r1"}


def test_the_duplicate_guard_of_all_of_them_is_asked_once_and_finds_what_is_there(shop: Shop) -> None:
    some = [_quote(shop, f"t{n}") for n in range(6)]
    with _statements(shop) as seen:
        shop.execute_all(*some)
    assert len([s for s in seen if s.lstrip().startswith("SELECT") and "sTitle" in s]) == 1
    assert len([s for s in seen if "INSERT INTO ai_op_number" in s]) == 2, "the guard, and the number's first"
    again = [_quote(shop, f"n{n}") for n in range(3)]
    shop.add(quote, sId="twin", sBillNo="X", sTitle="n1", sCustomerId="c1", dTaxRate=Decimal("0.1"))
    refusal = _refusal(shop, *again)
    assert refusal.code is E.POSSIBLE_DUPLICATE
    assert [c["id"] for c in refusal.candidates] == ["twin"]
    del again[1]
    assert len(shop.execute_all(*again)) == 2


def test_records_that_share_a_part_of_the_natural_key_are_no_twins_however_many(shop: Shop) -> None:
    some = [_quote(shop, f"t{n}") for n in range(3)]
    with shop.engine.begin() as connection:
        rows = [{"sId": f"z{n:03}", "sTitle": f"t{n % 3}", "sCustomerId": "c2"} for n in range(60)]
        owner = {"sBrandsId": "b1", "sSubsidiaryId": "s1"}
        connection.execute(
            quote.insert(), [{**owner, **row, "bInvalid": n % 2} for n, row in enumerate(rows)]
        )
        # One that cannot be told from its neighbours by the columns alone, behind more than are looked at.
        for n in range(60):
            connection.execute(
                quote.insert(), {**owner, "sId": f"y{n:03}", "sTitle": "t0 ", "sCustomerId": "c1"}
            )
    assert len(shop.execute_all(*some)) == 3


def test_sets_that_meet_write_a_twin_once(shop: Shop) -> None:
    sets = [[_quote(shop, f"t{n}") for n in order] for order in ((1, 2, 3), (4, 3, 5), (6, 1, 7))]

    def run(some: list[Execution]) -> str:
        try:
            shop.execute_all(*some)
        except OpstageError as error:
            return error.code.value
        return "done"

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(run, sets))
    with shop.engine.connect() as connection:
        titles = [
            row[0] for row in connection.execute(select(quote.c.sTitle).where(quote.c.sTitle.like("t_")))
        ]
    assert len(titles) == len(set(titles)) == 3 * ends.count("done")
    assert "done" in ends
    assert set(ends) <= {"done", "possible_duplicate"}
