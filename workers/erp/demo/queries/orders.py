"""``orders``: sales orders with their lines, as they were taken."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel
from sqlalchemy import exists, select

from staging.contracts.error import Wire
from staging.contracts.query import AppliedSort
from staging.domain.query import Plan
from workers.erp.demo.queries.names import ORDER, texts_of
from workers.erp.demo.queries.sales import OrderFilter, order_of
from workers.erp.demo.queries.shapes import (
    STATUS_TEXTS,
    Amount,
    Factor,
    Price,
    Quantity,
    Status,
    Statuses,
)
from workers.erp.query import Found, QueryContext, says
from workers.erp.sql.queries import counted, ordering
from workers.erp.sql.tree import Line, load_lines

_FIELDS = (
    "billNo",
    "orderDate",
    "deliveryDate",
    "customer",
    "customerPoNo",
    "totalAmount",
    "examined",
    "invalid",
)


class OrdersFilter(OrderFilter):
    status: Annotated[Statuses, says("状态", "Status", "默认全部", "all unless said")] = []


class OrderLine(Wire):
    product: Annotated[str, says("产品 id", "Product id")]
    product_name: Annotated[str, says("产品", "Product")]
    quantity: Annotated[Quantity, says("数量", "Quantity")]
    list_price: Annotated[Price, says("下单时标价", "List price when ordered")]
    discount: Annotated[Factor, says("下单时折扣率", "Factor when ordered")]
    price: Annotated[Price, says("下单时单价", "Price when ordered")]
    amount: Annotated[Amount, says("下单时金额", "Amount when ordered")]
    out_quantity: Annotated[Quantity, says("已出库数量", "Sent so far")]


class OrderRow(Wire):
    id: str
    bill_no: Annotated[str, says("单据号", "Order no.")]
    order_date: Annotated[date | None, says("下单日期", "Ordered on")] = None
    delivery_date: Annotated[date | None, says("交货日期", "Deliver on")] = None
    customer: Annotated[str, says("客户 id", "Customer id")]
    customer_name: Annotated[str, says("客户", "Customer")]
    customer_po_no: Annotated[str | None, says("客户订单号", "Customer's order no.")] = None
    status: Annotated[Status, says("状态", "Status")]
    status_text: str
    total_amount: Annotated[Amount, says("总金额（下单时）", "Total when ordered")]
    lines: Annotated[list[OrderLine], says("明细", "Lines")]


class Orders:
    Filter: ClassVar[type[BaseModel]] = OrdersFilter
    Row: ClassVar[type[BaseModel]] = OrderRow
    sortable = ("orderDate", "billNo", "totalAmount")
    unique = "id"
    default_sort = (AppliedSort(field="orderDate", direction="DESC"),)

    def find(self, context: QueryContext, asked: OrdersFilter, plan: Plan) -> Found:
        connection, tenant = context.connection, context.actor.tenant
        master = context.tables.master(ORDER)
        line = master.children["lines"]
        customers, products = asked.keys(context)
        terms = asked.terms(context, customers, asked.status)
        if products:
            terms.append(
                exists().where(
                    order_of(line) == master.key,
                    line.column("product").in_(products),
                    *line.of_tenant(tenant),
                )
            )
        statement = select(master.key, *(master.column(name) for name in _FIELDS)).where(*terms)
        statement = statement.order_by(*ordering(master, plan)).offset(plan.offset).limit(plan.size + 1)
        orders = [
            (key, dict(zip(_FIELDS, values, strict=True))) for key, *values in connection.execute(statement)
        ]
        lines = load_lines(connection, line, tenant, [key for key, _ in orders])
        return Found(_rows(context, orders, lines), counted(connection, master, terms))


def _rows(
    context: QueryContext, orders: list[tuple[str, dict[str, Any]]], lines: list[Line]
) -> list[OrderRow]:
    texts = texts_of(
        context, (order["customer"] for _, order in orders), (line.values["product"] for line in lines)
    )
    locale = "zh" if context.actor.locale == "zh" else "en"
    below: dict[str, list[OrderLine]] = {key: [] for key, _ in orders}
    for line in lines:
        said = line.values
        below[line.parent].append(
            OrderLine(
                product=said["product"],
                product_name=texts.record("product", said["product"]),
                quantity=said["quantity"],
                list_price=said["listPrice"],
                discount=said["discount"],
                price=said["price"],
                amount=said["amount"],
                out_quantity=said["outQuantity"],
            )
        )
    rows = []
    for key, order in orders:
        status: Status = "cancelled" if order["invalid"] else "examined" if order["examined"] else "draft"
        rows.append(
            OrderRow(
                id=key,
                bill_no=order["billNo"],
                order_date=order["orderDate"],
                delivery_date=order["deliveryDate"],
                customer=order["customer"],
                customer_name=texts.record("customer", order["customer"]),
                customer_po_no=order["customerPoNo"] or None,
                status=status,
                status_text=STATUS_TEXTS[status][locale],
                total_amount=order["totalAmount"],
                lines=below[key],
            )
        )
    return rows
