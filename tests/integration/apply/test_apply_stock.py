"""Stock moves when a document is examined: never below zero, never into what is promised, exact, also in a race."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Index

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from tests.support.small_erp import (
    FORMS,
    OTHER_TENANT,
    SmallErp,
    move,
    move_line,
    product,
    stock,
)
from workers.erp.sql import stock as stock_module
from workers.erp.sql.stock import Level, Move, move_stock

D = Decimal


@pytest.fixture(autouse=True)
def _product(erp: SmallErp) -> None:
    erp.insert(product, {"sId": "p1", "sName": "128g铜版纸"})


def lies(
    erp: SmallErp, quantity: str, reserved: str = "0", where: str = "w1", what: str = "p1", **more: Any
) -> None:
    row = {"sId": f"s-{what}-{where}", "sProductId": what, "sWarehouseId": where}
    erp.insert(stock, {**row, "dQuantity": D(quantity), "dReserved": D(reserved)}, **more)


def levels(erp: SmallErp) -> dict[tuple[str, str], tuple[Any, Any]]:
    return {(r["sProductId"], r["sWarehouseId"]): (r["dQuantity"], r["dReserved"]) for r in erp.rows(stock)}


def unique_place() -> Index:
    """The index an ERP may have on its stock; made and dropped by the test, not part of the schema."""
    columns = [stock.c[n] for n in ("sBrandsId", "sSubsidiaryId", "sProductId", "sWarehouseId")]
    index = Index("uq_t_stock_place", *columns, unique=True)
    stock.indexes.discard(index)
    return index


def document(erp: SmallErp, form: str, *lines: tuple[str, str, str]) -> str:
    payload = {"lines": [{"product": p, "warehouse": w, "quantity": q} for p, w, q in lines]}
    return erp.run(form, "create", payload=payload).result_bill_id


def test_an_outbound_takes_when_examined_and_gives_back_when_that_is_cancelled(erp: SmallErp) -> None:
    lies(erp, "10")
    lies(erp, "5", where="w2")
    bill = document(erp, "outbound", ("p1", "w1", "4.000"), ("p1", "w2", "5.000"), ("p1", "w1", "6.000"))
    assert levels(erp)["p1", "w1"][0] == 10  # nothing moves before
    erp.run("outbound", "examine", target=bill)
    assert {k: v[0] for k, v in levels(erp).items()} == {("p1", "w1"): 0, ("p1", "w2"): 0}
    erp.run("outbound", "cancelExamine", target=bill)
    assert {k: v[0] for k, v in levels(erp).items()} == {("p1", "w1"): 10, ("p1", "w2"): 5}


def test_below_zero_is_refused_naming_product_have_and_need(erp: SmallErp) -> None:
    lies(erp, "9.999")
    bill = document(erp, "outbound", ("p1", "w1", "4.000"), ("p1", "w1", "6.000"))
    error = erp.refusal("outbound", "examine", target=bill)
    assert error.code is ErrorCode.BUSINESS_RULE
    assert error.message("zh") == "产品“128g铜版纸”库存不足：可用 9.999，需要 10.000"
    assert error.message("en") == 'Not enough stock of product "128g铜版纸": available 9.999, needed 10.000'
    nothing = document(erp, "outbound", ("p1", "elsewhere", "0.001"))
    assert "可用 0，需要 0.001" in erp.refusal("outbound", "examine", target=nothing).message("zh")


def test_an_inbound_makes_the_row_it_needs_and_cannot_be_taken_back_once_used(erp: SmallErp) -> None:
    bill = document(erp, "inbound", ("p1", "w9", "7.000"))
    erp.run("inbound", "examine", target=bill)
    assert levels(erp) == {("p1", "w9"): (D("7.000"), D(0))}
    out = document(erp, "outbound", ("p1", "w9", "1.000"))
    erp.run("outbound", "examine", target=out)
    error = erp.refusal("inbound", "cancelExamine", target=bill)
    assert error.message("zh") == "产品“128g铜版纸”库存不足：可用 6.000，需要 7.000"


def test_eighteen_digits_move_exactly(erp: SmallErp) -> None:
    lies(erp, "123456789012345.678")
    erp.run("outbound", "examine", target=document(erp, "outbound", ("p1", "w1", "123456789012345.677")))
    assert levels(erp)["p1", "w1"][0] == D("0.001")
    erp.run("inbound", "examine", target=document(erp, "inbound", ("p1", "w1", "123456789012345.677")))
    assert levels(erp)["p1", "w1"][0] == D("123456789012345.678")


def test_what_is_promised_is_left_for_those_it_is_promised_to(erp: SmallErp) -> None:
    lies(erp, "10", reserved="8")
    anyone = document(erp, "outbound", ("p1", "w1", "2.001"))
    assert "可用 2.000" in erp.refusal("outbound", "examine", target=anyone).message("zh")
    promised = document(erp, "outbound", ("p1", "w1", "8.000"))
    with erp.engine.begin() as connection:
        connection.execute(
            move_line.update().where(move_line.c.sParentId == promised).values(sPromiseId="so1")
        )
    erp.run("outbound", "examine", target=promised)
    assert levels(erp)["p1", "w1"] == (2, 0)  # the promise is used up with the goods
    erp.run("outbound", "cancelExamine", target=promised)
    assert levels(erp)["p1", "w1"] == (10, 8)


def test_more_than_was_promised_cannot_be_taken_as_promised(erp: SmallErp) -> None:
    lies(erp, "10", reserved="3")
    bill = document(erp, "outbound", ("p1", "w1", "4.000"))
    with erp.engine.begin() as connection:
        connection.execute(move_line.update().values(sPromiseId="so1"))
    assert erp.refusal("outbound", "examine", target=bill).message("zh") == (
        "产品“128g铜版纸”预留数量不足：已预留 3.000，需要 4.000"
    )


def test_another_tenants_stock_is_neither_seen_nor_touched(erp: SmallErp) -> None:
    lies(erp, "100", tenant=OTHER_TENANT)
    bill = document(erp, "outbound", ("p1", "w1", "1.000"))
    assert "可用 0" in erp.refusal("outbound", "examine", target=bill).message("zh")
    erp.run("inbound", "examine", target=document(erp, "inbound", ("p1", "w1", "3.000")))
    quantities = {row["sBrandsId"]: row["dQuantity"] for row in erp.rows(stock)}
    assert quantities == {OTHER_TENANT.brands_id: 100, "1111111111": 3}


def test_a_place_with_several_rows_is_left_alone(erp: SmallErp) -> None:
    lies(erp, "1")
    erp.insert(
        stock, {"sId": "second", "sProductId": "p1", "sWarehouseId": "w1", "dQuantity": 1, "dReserved": 0}
    )
    bill = document(erp, "outbound", ("p1", "w1", "1.000"))
    assert "多条库存记录" in erp.refusal("outbound", "examine", target=bill).message("zh")


def test_a_line_without_warehouse_is_refused(erp: SmallErp) -> None:
    bill = erp.run(
        "outbound", "create", payload={"lines": [{"product": "p1", "quantity": "1.000"}]}
    ).result_bill_id
    assert erp.refusal("outbound", "examine", target=bill).code is ErrorCode.BUSINESS_RULE


def test_a_handler_moves_and_reserves_and_learns_before_and_after(erp: SmallErp) -> None:
    lies(erp, "10")
    with erp.engine.begin() as connection:
        moves = [Move("p1", "w1", reserved=D(4)), Move("p1", "w1", quantity=D("-1.5"))]
        change = move_stock(erp.context(connection), FORMS["outbound"], moves)
        assert change == {("p1", "w1"): (Level(D(10), D(0)), Level(D("8.5"), D(4)))}
        with pytest.raises(Refused) as refused:
            move_stock(erp.context(connection), FORMS["outbound"], [Move("p1", "w1", reserved=D(5))])
        assert refused.value.params["have"] == "4.500"
        assert move_stock(erp.context(connection), FORMS["outbound"], []) == {}
    assert levels(erp)["p1", "w1"] == (D("8.500"), 4)


def test_outbounds_at_once_over_the_same_places_never_go_below_zero(
    erp: SmallErp, threads: ThreadPoolExecutor
) -> None:
    """Ten documents name two places in opposite orders; 5 can be served."""
    lies(erp, "10")
    lies(erp, "10", where="w2")
    places = [("p1", "w1", "2.000"), ("p1", "w2", "2.000")]
    bills = [document(erp, "outbound", *(places if n % 2 else reversed(places))) for n in range(10)]

    def attempt(bill: str) -> bool:
        return erp.allowed("outbound", "examine", target=bill)

    assert list(threads.map(attempt, bills)).count(True) == 5
    assert levels(erp) == {("p1", "w1"): (0, 0), ("p1", "w2"): (0, 0)}
    assert len(erp.rows(move, bCheck=1)) == 5


@pytest.mark.parametrize("unique", [False, True])
def test_the_first_goods_at_a_new_place_make_one_row_whoever_comes_at_once(
    erp: SmallErp, threads: ThreadPoolExecutor, unique: bool
) -> None:
    index = unique_place()
    if unique:
        index.create(erp.engine)
    try:
        bills = [
            document(erp, "inbound", ("p1", "new", "1.000"), ("p2", f"w{n % 2}", "1.000")) for n in range(10)
        ]
        list(threads.map(lambda bill: erp.retried("inbound", "examine", target=bill), bills))
        assert {k: v[0] for k, v in levels(erp).items()} == {
            ("p1", "new"): 10,
            ("p2", "w0"): 5,
            ("p2", "w1"): 5,
        }
        assert len(erp.rows(stock)) == 3
    finally:
        if unique:
            index.drop(erp.engine)


def test_a_row_the_erp_inserts_itself_at_the_same_moment_is_used(erp: SmallErp) -> None:
    """The ERP commits the row after we looked for it and before we insert ours: its unique index decides, no error."""
    index = unique_place()
    index.create(erp.engine)
    try:
        lies(erp, "2")
        with erp.engine.begin() as connection:
            effect = FORMS["inbound"].stock
            assert effect is not None
            context = erp.context(connection)
            rows = stock_module._created(
                context, FORMS["inbound"], effect, context.tables.stock("inbound"), [("p1", "w1")]
            )
            assert rows == {("p1", "w1"): ("s-p1-w1", Level(D(2), D(0)))}
        assert len(erp.rows(stock)) == 1
    finally:
        index.drop(erp.engine)


def test_a_strangers_examine_moves_nothing(erp: SmallErp) -> None:
    lies(erp, "10")
    bill = document(erp, "outbound", ("p1", "w1", "1.000"))
    error = erp.refusal("outbound", "examine", target=bill, actor=Actor(OTHER_TENANT, "u-zhao"))
    assert error.code is ErrorCode.RECORD_NOT_FOUND
