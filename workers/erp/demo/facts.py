"""What the narrated demo looks up, and what its colleague does, straight in the ERP's tables."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, select, update

from workers.erp.demo.schema import masters, products, stock, trade


@dataclass(frozen=True, slots=True)
class Place:
    """A product in a warehouse, by the numbers people use. ``free``: neither taken nor promised."""

    product_no: str
    warehouse_no: str
    free: Decimal


def a_customer(connection: Connection, brands: str) -> Row[Any]:
    """The tenant's first valid customer."""
    table = masters.customer
    valid = (table.c.sBrandsId == brands) & (table.c.bInvalid == 0)
    return connection.execute(select(table).where(valid).order_by(table.c.sCustomerNo).limit(1)).one()


def a_stocked_place(connection: Connection, brands: str) -> Place:
    """The place with the most free stock of the tenant."""
    table, house, product = stock.stock, masters.warehouse, products.product
    statement = (
        select(product.c.sProductNo, house.c.sWarehouseNo, table.c.dQuantity, table.c.dReserved)
        .join(house, house.c.sId == table.c.sWarehouseId)
        .join(product, product.c.sId == table.c.sProductId)
        .where(table.c.sBrandsId == brands, product.c.bInvalid == 0, house.c.bInvalid == 0)
    )
    rows = connection.execute(statement).all()
    best = max(rows, key=lambda row: (row.dQuantity - row.dReserved, row.sProductNo))
    return Place(best.sProductNo, best.sWarehouseNo, best.dQuantity - best.dReserved)


def colleague_edits(connection: Connection, quotation_id: str, contact: str) -> None:
    """A colleague saves another contact in the ERP's own form."""
    table = trade.quotation
    connection.execute(update(table).where(table.c.sId == quotation_id).values(sContact=contact))
