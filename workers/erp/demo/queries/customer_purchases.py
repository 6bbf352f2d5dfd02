"""``customer_purchases``: what customers bought over a period, added up on the server.

Added up in Python, since SQLite would add exact decimals as binary floats; the lines are read in batches, and only the
sums are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select, select

from staging.contracts.error import Wire
from staging.contracts.query import AppliedSort
from staging.domain.errors import rule
from staging.domain.query import Plan
from workers.erp.demo.queries.names import ORDER, texts_of
from workers.erp.demo.queries.sales import OrderFilter, order_of
from workers.erp.demo.queries.shapes import Amount, Quantity, Statuses
from workers.erp.query import Found, QueryContext, says, sorted_page

BATCH = 1_000
"""Lines in memory at a time."""
MOST_GROUPS = 100_000
Grouping = Literal["customer_product", "customer", "product"]


class PurchasesFilter(OrderFilter):
    status: Annotated[
        Statuses,
        says("订单状态", "Status of the orders", "默认不含已取消", "without cancelled ones unless said"),
    ] = ["draft", "examined"]
    group_by: Annotated[
        Grouping,
        says(
            "汇总方式",
            "Added up by",
            "customer_product 按客户和产品，customer 按客户，product 按产品",
            "customer_product: each product of each customer; customer: all of a customer; product: of all customers",
        ),
    ] = "customer_product"


class PurchasesRow(Wire):
    id: str
    customer: Annotated[str | None, says("客户 id", "Customer id")] = None
    customer_name: Annotated[str | None, says("客户", "Customer")] = None
    product: Annotated[str | None, says("产品 id", "Product id")] = None
    product_name: Annotated[str | None, says("产品", "Product")] = None
    quantity: Annotated[Quantity, says("数量合计", "Quantity in all")]
    amount: Annotated[Amount, says("金额合计（下单时）", "Amount in all, as ordered")]
    orders: Annotated[int, says("订单数", "Number of orders")]
    last_order_date: Annotated[date | None, says("最近下单日期", "Last ordered on")] = None


@dataclass(slots=True)
class _Group:
    """Sums of one customer and product; "" where all are taken together."""

    customer: str
    product: str
    quantity: Decimal = Decimal(0)
    amount: Decimal = Decimal(0)
    orders: int = 0
    last_order_date: date | None = None
    order: str = ""

    @property
    def id(self) -> str:
        return ":".join(part for part in (self.customer, self.product) if part)

    def add(self, order: str, ordered: date | None, quantity: Decimal, amount: Decimal) -> None:
        """Lines of one order come one after the other."""
        self.quantity += quantity
        self.amount += amount
        if order != self.order:
            self.order, self.orders = order, self.orders + 1
        if ordered and (self.last_order_date is None or ordered > self.last_order_date):
            self.last_order_date = ordered


class CustomerPurchases:
    Filter: ClassVar[type[BaseModel]] = PurchasesFilter
    Row: ClassVar[type[BaseModel]] = PurchasesRow
    sortable = ("quantity", "amount", "orders", "lastOrderDate")
    unique = "id"
    default_sort = (AppliedSort(field="amount", direction="DESC"),)

    def find(self, context: QueryContext, asked: PurchasesFilter, plan: Plan) -> Found:
        groups = _added_up(context, _lines(context, asked), asked.group_by)
        page = sorted_page(groups, plan)
        texts = texts_of(
            context, (g.customer for g in page if g.customer), (g.product for g in page if g.product)
        )
        rows = [
            PurchasesRow(
                id=group.id,
                customer=group.customer or None,
                customer_name=texts.record("customer", group.customer) or None,
                product=group.product or None,
                product_name=texts.record("product", group.product) or None,
                quantity=group.quantity,
                amount=group.amount,
                orders=group.orders,
                last_order_date=group.last_order_date,
            )
            for group in page
        ]
        return Found(rows, len(groups))


def _lines(context: QueryContext, asked: PurchasesFilter) -> Select[Any]:
    master = context.tables.master(ORDER)
    line = master.children["lines"]
    customers, products = asked.keys(context)
    terms: list[ColumnElement[bool]] = [
        *asked.terms(context, customers, asked.status),
        *line.of_tenant(context.actor.tenant),
        order_of(line) == master.key,
    ]
    if products:
        terms.append(line.column("product").in_(products))
    columns = (
        master.key,
        master.column("customer"),
        line.column("product"),
        master.column("orderDate"),
        line.column("quantity"),
        line.column("amount"),
    )
    return select(*columns).where(*terms).order_by(master.key)


def _added_up(
    context: QueryContext,
    lines: Select[Any],
    by: Grouping,
) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    with context.connection.execute(lines, execution_options={"yield_per": BATCH}) as rows:
        for order, customer, product, ordered, quantity, amount in rows:
            key = ("" if by == "product" else customer, "" if by == "customer" else product)
            group = groups.get(key)
            if group is None:
                if len(groups) >= MOST_GROUPS:
                    raise rule("汇总范围过大，请缩小日期范围或指定客户", "too much to add up: narrow it down")
                group = groups[key] = _Group(*key)
            group.add(order, ordered, quantity, amount)
    return list(groups.values())
