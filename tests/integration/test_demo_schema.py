"""The demo's tables and data on every engine: made once, whole, and sound by the oracle, which does find faults."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, delete, insert, inspect, update
from sqlalchemy.exc import IntegrityError, OperationalError

from workers.erp.demo import oracle
from workers.erp.demo.schema import create_demo, drop_demo, products, stock, trade
from workers.erp.demo.seed import build_rows, seed_demo


@pytest.fixture
def seeded(engine: Engine) -> Engine:
    create_demo(engine)
    seed_demo(engine)
    return engine


def test_creating_seeding_and_dropping_may_be_repeated(engine: Engine) -> None:
    create_demo(engine)
    create_demo(engine)
    inserted = seed_demo(engine)
    assert sum(inserted.values()) > 2000
    assert seed_demo(engine) == {}
    with engine.connect() as connection:
        assert oracle.counts(connection) == {table.name: len(rows) for table, rows in build_rows().items()}
    drop_demo(engine)
    drop_demo(engine)
    assert inspect(engine).get_table_names() == []


def test_two_that_seed_at_once_seed_once(engine: Engine) -> None:
    create_demo(engine)
    results: list[dict[str, int]] = []
    seeders = [threading.Thread(target=lambda: results.append(seed_demo(engine))) for _ in range(3)]
    for seeder in seeders:
        seeder.start()
    for seeder in seeders:
        seeder.join()
    assert sorted(bool(result) for result in results) == [False, False, True]


def test_seeded_data_adds_up(seeded: Engine) -> None:
    with seeded.connect() as connection:
        assert oracle.inconsistencies(connection) == []
        assert oracle.level(connection, "B001", "CK03", "CP00001").free > 0


def test_decimals_come_back_as_they_were_seeded(seeded: Engine) -> None:
    expected = {row["sId"]: row for row in build_rows()[products.product]}
    with seeded.connect() as connection:
        for row in connection.execute(products.product.select()):
            assert row.dPrice == expected[row.sId]["dPrice"]
            assert row.tCreateDate == expected[row.sId]["tCreateDate"]
            assert row.sProductName == expected[row.sId]["sProductName"]


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"dQuantity": Decimal(-1), "dReserved": Decimal(0)}, "ck_sto_stock_dQuantity_min"),
        ({"dReserved": Decimal(-1)}, "ck_sto_stock_dReserved_min"),
        ({"dQuantity": Decimal(9), "dReserved": Decimal(10)}, "ck_sto_stock_dReserved_max"),
    ],
)
def test_the_database_itself_refuses_impossible_stock(
    seeded: Engine, values: Mapping[str, Any], constraint: str
) -> None:
    # MariaDB reports a failed CHECK as an operational error.
    with pytest.raises((IntegrityError, OperationalError), match=constraint), seeded.begin() as connection:
        connection.execute(update(stock.stock).values(values))


def test_document_numbers_are_unique_per_tenant_only(seeded: Engine) -> None:
    with seeded.connect() as connection:
        row = oracle.one(connection, "pur_order", sBrandsId="B001", sBillNo="CGD202601001")
    copy = {**row._mapping, "sId": "x-1"}
    with pytest.raises(IntegrityError), seeded.begin() as connection:
        connection.execute(insert(trade.purchase_order), copy)
    with seeded.begin() as connection:
        connection.execute(insert(trade.purchase_order), {**copy, "sBrandsId": "B009"})


def test_the_oracle_finds_what_is_wrong(seeded: Engine) -> None:
    faults = [
        (
            update(stock.stock).where(stock.stock.c.dReserved == 0).values(dQuantity=Decimal(7)),
            "by documents",
        ),
        (update(trade.sales_order_line).values(dOutQuantity=Decimal(0)), "dOutQuantity"),
        (update(trade.quotation).values(dTotalAmount=Decimal(1)), "quo_quotationmaster"),
        (delete(trade.quotation_part), "no quo_quotationpart"),
        (delete(stock.adjustment).where(stock.adjustment.c.sId == "B001-adj-0001"), "sto_adjustment B001"),
    ]
    for fault, sign in faults:
        with seeded.connect() as connection:
            connection.execute(fault)
            assert any(sign in found for found in oracle.inconsistencies(connection)), sign
            connection.rollback()
    with seeded.connect() as connection:
        assert oracle.inconsistencies(connection) == []
