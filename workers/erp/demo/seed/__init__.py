"""The demo's data, made anew from a seed: two tenants, their master data, and a year of documents that agree.

Stock equals what the examined documents moved; what is reserved equals what valid sales orders still wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from random import Random

from sqlalchemy import Connection, Engine, Table, insert, select
from sqlalchemy.exc import IntegrityError

from staging.storage.dberrors import DbFailure, classify_db_error
from workers.erp.demo.schema import demo_metadata, system
from workers.erp.demo.seed import purchasing, sales, warehouse
from workers.erp.demo.seed.masters import add_masters
from workers.erp.demo.seed.people import add_people
from workers.erp.demo.seed.rows import Row, Rows, TenantRows
from workers.erp.demo.seed.stockbook import StockBook
from workers.erp.demo.seed.year import Year

DEFAULT_SEED = 20261130
_FIRST, _DAYS = date(2026, 1, 8), 290
_KINDS: dict[Callable[[Year, date], None], int] = {
    sales.quotation: 6,
    purchasing.requisition: 4,
    purchasing.purchase_order: 5,
    purchasing.outsource_order: 2,
    warehouse.inbound: 4,
    sales.sales_order: 6,
    warehouse.outbound: 4,
    warehouse.adjustment: 2,
}


def build_rows(seed: int = DEFAULT_SEED) -> dict[Table, list[Row]]:
    """All rows by table, in the order of insertion; the same for the same seed on every Python and machine."""
    rows = Rows()
    first = TenantRows(rows, Random(f"{seed}-B001"), "B001")
    add_people(first)
    masters = add_masters(first, "u-zhao", customers=60, suppliers=28, materials=60, goods=50)
    staff = {"sales": "u-lin", "buyer": "u-chen", "keeper": "u-wang", "manager": "u-zhao"}
    _run(Year(first, masters, staff, StockBook(first)), steps=340)

    second = TenantRows(rows, Random(f"{seed}-B002"), "B002")
    add_people(second)
    masters = add_masters(second, "u-gao", customers=18, suppliers=8, materials=12, goods=20)
    staff = {"sales": "u-he", "buyer": "u-gao", "keeper": "u-gao", "manager": "u-gao"}
    _run(Year(second, masters, staff, StockBook(second)), steps=60)
    return {table: rows.tables[table] for table in demo_metadata.sorted_tables if rows.tables[table]}


def _run(year: Year, steps: int) -> None:
    """Opening stock, then ``steps`` documents spread over the year."""
    warehouse.opening_stock(year)
    for step in range(steps):
        kind = year.tenant.random.choices(list(_KINDS), list(_KINDS.values()))[0]
        kind(year, _FIRST + timedelta(days=step * _DAYS // steps))


def seed_demo(engine: Engine, seed: int = DEFAULT_SEED) -> dict[str, int]:
    """Fill the demo's tables in one transaction; return rows by table, empty where it was seeded before.

    The companies go in first: their unique index is where a second seeder waits and then finds that it is too late.
    """
    rows = build_rows(seed)
    with engine.begin() as connection:
        if not _claim(connection, rows.pop(system.company)):
            return {}
        for table, values in rows.items():
            connection.execute(insert(table), values)
    return {table.name: len(values) for table, values in rows.items()}


def _claim(connection: Connection, companies: list[Row]) -> bool:
    """Insert the companies; False where they are there already, or another seeder just put them there."""
    if connection.execute(select(system.company.c.sId).limit(1)).first():
        return False
    try:
        connection.execute(insert(system.company), companies)
    except IntegrityError as error:
        if classify_db_error(error) is DbFailure.UNIQUE:
            return False
        raise
    return True
