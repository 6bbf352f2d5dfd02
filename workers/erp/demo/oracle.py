"""What the demo database itself says, by plain queries that share no code with adapter or handlers.

For tests, benchmarks and the narrated demo. ``inconsistencies`` is the whole of it: empty after any amount of killing.
All sums are taken in Python, since SQLite would add exact decimals as binary floats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, Table, func, select

from workers.erp.demo.schema import demo_metadata, masters, products, stock, trade

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Level:
    """Stock of one product in one warehouse; ``free`` is what may still be promised or taken."""

    quantity: Decimal
    reserved: Decimal

    @property
    def free(self) -> Decimal:
        return self.quantity - self.reserved


def count(connection: Connection, table: str, **equal: Any) -> int:
    """Rows of ``table`` whose columns have these values, e.g. ``count(c, "pur_order", sBillNo="CGD202611001")``."""
    counted = demo_metadata.tables[table]
    statement = select(func.count()).select_from(counted)
    for column, value in equal.items():
        statement = statement.where(counted.c[column] == value)
    return int(connection.execute(statement).scalar_one())


def counts(connection: Connection) -> dict[str, int]:
    """Rows by table: equal before and after whatever must not have written."""
    return {name: count(connection, name) for name in sorted(demo_metadata.tables)}


def one(connection: Connection, table: str, **equal: Any) -> Row[Any]:
    """The only row with these values; raises NoResultFound or MultipleResultsFound."""
    read = demo_metadata.tables[table]
    return connection.execute(
        select(read).where(*(read.c[name] == value for name, value in equal.items()))
    ).one()


def rows(connection: Connection, table: str, **equal: Any) -> list[Row[Any]]:
    """All rows with these values, by key."""
    read = demo_metadata.tables[table]
    wanted = select(read).where(*(read.c[name] == value for name, value in equal.items()))
    return list(connection.execute(wanted.order_by(read.c.sId)))


def level(connection: Connection, brands: str, warehouse_no: str, product_no: str) -> Level:
    """Stock by the numbers people use; zero where there is no row."""
    table, house, product = stock.stock, masters.warehouse, products.product
    statement = (
        select(table.c.dQuantity, table.c.dReserved)
        .join(house, house.c.sId == table.c.sWarehouseId)
        .join(product, product.c.sId == table.c.sProductId)
        .where(
            table.c.sBrandsId == brands,
            house.c.sWarehouseNo == warehouse_no,
            product.c.sProductNo == product_no,
        )
    )
    found = connection.execute(statement).one_or_none()
    return Level(found.dQuantity, found.dReserved) if found else Level(ZERO, ZERO)


def inconsistencies(connection: Connection) -> list[str]:
    """Everything that does not add up, one sentence each; empty for a sound database."""
    return [
        *_stock_and_documents(connection),
        *_written_back(connection),
        *_totals(connection),
        *_orphans(connection),
        *_numbers(connection),
    ]


def _live_lines(connection: Connection, master: Table, line: Table, *, examined: bool) -> Iterator[Row[Any]]:
    """Lines of valid (and ``examined``) documents."""
    statement = select(line).join(master, master.c.sId == line.c.sParentId).where(master.c.bInvalid == 0)
    if examined:
        statement = statement.where(master.c.bCheck == 1)
    return iter(connection.execute(statement))


def _stock_and_documents(connection: Connection) -> Iterator[str]:
    moved: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    promised: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for line in _live_lines(connection, stock.inbound, stock.inbound_line, examined=True):
        moved[line.sWarehouseId, line.sProductId] += line.dQuantity
    for line in _live_lines(connection, trade.sales_order, trade.sales_order_line, examined=False):
        promised[line.sWarehouseId, line.sProductId] += line.dQuantity
    for line in _live_lines(connection, stock.outbound, stock.outbound_line, examined=True):
        moved[line.sWarehouseId, line.sProductId] -= line.dQuantity
        if line.sSourceLineId:
            promised[line.sWarehouseId, line.sProductId] -= line.dQuantity
    for adjusted in connection.execute(select(stock.adjustment).where(stock.adjustment.c.bInvalid == 0)):
        moved[adjusted.sWarehouseId, adjusted.sProductId] += adjusted.dDelta
        if adjusted.dBeforeQuantity + adjusted.dDelta != adjusted.dAfterQuantity:
            yield f"adjustment {adjusted.sBillNo}: before + delta is not after"
    places = {(row.sWarehouseId, row.sProductId): row for row in connection.execute(select(stock.stock))}
    for key in {*moved, *promised, *places}:
        row = places.get(key)
        quantity, reserved = (row.dQuantity, row.dReserved) if row else (ZERO, ZERO)
        if quantity != moved[key]:
            yield f"stock {key}: {quantity} there, {moved[key]} by documents"
        if reserved != promised[key]:
            yield f"stock {key}: {reserved} reserved, {promised[key]} by sales orders"
        if not 0 <= reserved <= quantity:
            yield f"stock {key}: {quantity} there, {reserved} reserved"


_WRITE_BACKS = (
    (trade.requisition_line, "dOrderedQuantity", trade.purchase_order, trade.purchase_order_line),
    (trade.purchase_order_line, "dReceivedQuantity", stock.inbound, stock.inbound_line),
    (trade.sales_order_line, "dOutQuantity", stock.outbound, stock.outbound_line),
)


def _written_back(connection: Connection) -> Iterator[str]:
    """What source lines say was taken equals the valid lines that took it, and never exceeds their quantity."""
    for source, column, master, line in _WRITE_BACKS:
        taken: dict[str, Decimal] = defaultdict(Decimal)
        for row in _live_lines(connection, master, line, examined=False):
            taken[row.sSourceLineId] += row.dQuantity
        for row in connection.execute(select(source)):
            written = row._mapping[column]
            if written != taken[row.sId] or written > row.dQuantity:
                yield f"{source.name} {row.sId}: {column} {written} of {row.dQuantity}, {taken[row.sId]} by {line.name}"


_TOTALS = (
    (trade.quotation, trade.quotation_part),
    (trade.sales_order, trade.sales_order_line),
    (trade.requisition, trade.requisition_line),
    (trade.purchase_order, trade.purchase_order_line),
    (trade.outsource_order, trade.outsource_order_line),
)


def _totals(connection: Connection) -> Iterator[str]:
    for master, line in _TOTALS:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for row in connection.execute(select(line.c.sParentId, line.c.dAmount)):
            sums[row.sParentId] += row.dAmount
        for key, number, total in connection.execute(
            select(master.c.sId, master.c.sBillNo, master.c.dTotalAmount)
        ):
            if total != sums[key]:
                yield f"{master.name} {number}: total {total}, lines {sums[key]}"


_PARENTS: Mapping[Table, Table] = {
    trade.quotation_part: trade.quotation,
    trade.quotation_tier: trade.quotation_part,
    trade.sales_order_line: trade.sales_order,
    trade.requisition_line: trade.requisition,
    trade.purchase_order_line: trade.purchase_order,
    trade.outsource_order_line: trade.outsource_order,
    stock.inbound_line: stock.inbound,
    stock.outbound_line: stock.outbound,
    products.product_tier: products.product,
}


def _orphans(connection: Connection) -> Iterator[str]:
    """Lines without their document, or with another tenant than it."""
    for line, parent in _PARENTS.items():
        upper = {
            row.sId: row.sBrandsId for row in connection.execute(select(parent.c.sId, parent.c.sBrandsId))
        }
        for row in connection.execute(select(line.c.sId, line.c.sParentId, line.c.sBrandsId)):
            if upper.get(row.sParentId) != row.sBrandsId:
                yield f"{line.name} {row.sId}: no {parent.name} {row.sParentId} of {row.sBrandsId}"


def _numbers(connection: Connection) -> Iterator[str]:
    """Document numbers of one month follow each other without a gap, where documents are never really deleted."""
    for table in demo_metadata.tables.values():
        if "sBillNo" not in table.c or table is trade.requisition:
            continue
        series: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in connection.execute(select(table.c.sBrandsId, table.c.sBillNo)):
            series[row.sBrandsId, row.sBillNo[:9]].append(int(row.sBillNo[9:]))
        for (brands, prefix), numbers in series.items():
            if sorted(numbers) != list(range(1, len(numbers) + 1)):
                yield f"{table.name} {brands} {prefix}: {len(numbers)} documents, highest number {max(numbers)}"
