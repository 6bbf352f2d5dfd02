"""``erp.sales_order.create``: lines of one product and warehouse merged and sorted by SKU, priced from the product as
it is now, and the quantities reserved in stock.

The prices shown are pinned: if one has changed when the order is executed, it is a version conflict and not a surprise.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import Field

from staging.domain.canonical import decimal_text
from staging.domain.errors import rule
from staging.domain.ports import Outcome
from workers.erp.demo.handlers.catalogue import Product, read_products
from workers.erp.demo.handlers.drafting import STOCK_FORM, CommandInput, created, draft, plan_to_create
from workers.erp.demo.handlers.inputs import Day
from workers.erp.demo.handlers.pricing import factor_for, priced
from workers.erp.handlers import (
    CommandContext,
    CommandPlan,
    Move,
    create_record,
    look_at_stock,
    move_stock,
    writing,
)
from workers.erp.sql.change import Node
from workers.erp.sql.coerce import exact_decimal
from workers.erp.sql.completeness import compute_totals
from workers.erp.sql.problems import Problems


@dataclass(frozen=True, slots=True)
class _Work:
    root: Node
    moves: list[Move]


class CreateSalesOrder:
    """Handler of ``erp.sales_order.create``."""

    class Input(CommandInput):
        """``customer``, ``product``, ``warehouse``: id, number or exact name; no warehouse: the product's own.

        Prices are not input: they come from the product and its quantity discounts.
        """

        class Line(CommandInput):
            product: str
            quantity: exact_decimal(3)  # type: ignore[valid-type]
            warehouse: str | None = None

        customer: str
        lines: list[Line] = Field(min_length=1, max_length=200)
        customer_po_no: str | None = None
        order_date: Day | None = None
        delivery_date: Day | None = None
        address: str | None = None
        memo: str | None = None

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        root = draft(context, data.given())
        products = read_products(context, {line.new["product"] for line in root.children["lines"]})
        root.children["lines"] = lines = _merged(root.children["lines"], products)
        _require_on_sale(products.values())
        pins = _price(root, products)
        moves = [Move(line.new["product"], line.new["warehouse"], reserved=_quantity(line)) for line in lines]
        if not context.lock:  # at execution the same is decided under lock
            look_at_stock(writing(context), context.tables.form(STOCK_FORM), moves)
        return plan_to_create(context, root, pins=pins, work=_Work(root, moves))

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        work: _Work = plan.work
        write = writing(context)
        move_stock(write, context.tables.form(STOCK_FORM), work.moves)
        made = create_record(write, context.form, work.root.payload())
        total = work.root.new["totalAmount"]
        return created(context, made, zh="已创建销售订单", en="Sales order created:", totalAmount=total)


def _quantity(line: Node) -> Decimal:
    return Decimal(line.new["quantity"])


def _merged(lines: list[Node], products: dict[str, Product]) -> list[Node]:
    """One line per product and warehouse, quantities added up, in the order of SKUs."""
    merged: dict[tuple[str, str], Node] = {}
    for line in lines:
        first = merged.setdefault((line.new["product"], line.new["warehouse"]), line)
        if first is not line:
            first.new["quantity"] = decimal_text(_quantity(first) + _quantity(line))
    return sorted(
        merged.values(), key=lambda line: (products[line.new["product"]].number, line.new["warehouse"])
    )


def _require_on_sale(products: Any) -> None:
    off = sorted((p for p in products if not p.on_sale), key=lambda p: p.number)
    if off:
        names = [f"{p.number} {p.name}" for p in off]
        raise rule(f"商品未上架：{'、'.join(names)}", f"Not on sale: {', '.join(names)}", product=off[0].key)


def _price(root: Node, products: dict[str, Product]) -> dict[str, Any]:
    """Set prices and amounts of all lines and the total; returns the pins: what the prices were made from."""
    lines = root.children["lines"]
    pins: dict[str, Any] = {}
    for product in sorted(products.values(), key=lambda p: p.number):
        own = [line for line in lines if line.new["product"] == product.key]
        ordered = sum((_quantity(line) for line in own), Decimal(0))
        for line in own:
            cost = priced(product.price, product.steps, _quantity(line), ordered)
            line.new["listPrice"] = decimal_text(cost.list_price)
            line.new["discount"] = decimal_text(cost.factor)
            line.new["price"] = decimal_text(cost.price)
        pins[f"{product.number}.listPrice"] = decimal_text(product.price)
        pins[f"{product.number}.discount"] = decimal_text(factor_for(product.steps, ordered))
    problems = Problems()
    compute_totals(root, problems)
    problems.raise_any()
    return pins
