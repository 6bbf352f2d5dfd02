"""Which sales orders are meant: the filter that the queries over orders share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from sqlalchemy import Column, ColumnElement, and_, or_
from sqlalchemy.sql import false

from staging.contracts.error import Wire
from staging.storage.dialect import flag_is
from workers.erp.demo.queries.names import ORDER, Asked, keys_of
from workers.erp.demo.queries.shapes import ANY_NAME, DayRange, Names, Status
from workers.erp.query import QueryContext, says
from workers.erp.sql.catalogue_tables import RowTable


class OrderFilter(Wire):
    customer: Annotated[Names, says("客户", "Customer", *ANY_NAME)] = []
    product: Annotated[Names, says("产品", "Product", *ANY_NAME)] = []
    order_date: Annotated[DayRange | None, says("下单日期", "Ordered on")] = None

    def keys(self, context: QueryContext) -> tuple[list[str], list[str]]:
        """Customers and products named; voided ones, too: they were bought once."""
        asked = [
            *(Asked("customer", raw) for raw in self.customer),
            *(Asked("product", raw) for raw in self.product),
        ]
        keys = keys_of(context, asked, valid_only=False)
        return keys[: len(self.customer)], keys[len(self.customer) :]

    def terms(
        self, context: QueryContext, customers: Collection[str], statuses: Collection[Status]
    ) -> list[ColumnElement[bool]]:
        """WHERE of the order itself, its tenant included. No ``statuses``: any."""
        master = context.tables.master(ORDER)
        terms = master.of_tenant(context.actor.tenant)
        if customers:
            terms.append(master.column("customer").in_(customers))
        days = self.order_date or DayRange()
        if days.from_:
            terms.append(master.column("orderDate") >= days.from_)
        if days.to:
            terms.append(master.column("orderDate") <= days.to)
        if statuses:
            terms.append(or_(false(), *(_is(context, status) for status in statuses)))
        return terms


def order_of(line: RowTable) -> Column[str]:
    """The column in which an order's line keeps the order's key."""
    if line.parent is None:
        raise LookupError(f"{ORDER}.{line.path} has no parent column")
    return line.parent


def _is(context: QueryContext, status: Status) -> ColumnElement[bool]:
    master = context.tables.master(ORDER)
    examined, invalid = master.column("examined"), master.column("invalid")
    if status == "cancelled":
        return flag_is(invalid, True)
    return and_(flag_is(invalid, False), flag_is(examined, status == "examined"))
