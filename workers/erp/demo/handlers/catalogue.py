"""Products as a sales order or a quote sees them: price now, quantity discounts, on sale or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import select

from workers.erp.demo.handlers.pricing import Step
from workers.erp.handlers import CommandContext
from workers.erp.query import QueryContext


@dataclass(frozen=True, slots=True)
class Product:
    """``number`` is the SKU; ``steps`` lowest first."""

    key: str
    number: str
    name: str
    price: Decimal
    steps: tuple[Step, ...]
    valid: bool
    on_sale: bool


def read_products(context: CommandContext | QueryContext, keys: Collection[str]) -> dict[str, Product]:
    """The tenant's products of these keys, three statements whatever their number."""
    tenant, master = context.actor.tenant, context.tables.master("product")
    tiers, listing = master.children["tiers"], context.tables.master("product_listing")
    if tiers.parent is None:
        raise LookupError("product.tiers has no parent column")
    steps: dict[str, list[Step]] = defaultdict(list)
    minimum, factor = tiers.column("minQuantity"), tiers.column("discount")
    for key, at, times in context.connection.execute(
        select(tiers.parent, minimum, factor).where(tiers.parent.in_(keys), *tiers.of_tenant(tenant))
    ):
        steps[key].append(Step(at, times))
    listed = listing.column("product")
    on_sale = set(
        context.connection.execute(
            select(listed).where(
                listed.in_(keys),
                listing.column("listed") == 1,
                listing.column("invalid") == 0,
                *listing.of_tenant(tenant),
            )
        ).scalars()
    )
    columns = [master.key, *(master.column(name) for name in ("number", "name", "price", "invalid"))]
    rows = context.connection.execute(select(*columns).where(master.key.in_(keys), *master.of_tenant(tenant)))
    return {
        key: Product(
            key=key,
            number=number,
            name=name,
            price=price,
            steps=tuple(sorted(steps[key], key=lambda step: step.minimum)),
            valid=not invalid,
            on_sale=key in on_sale,
        )
        for key, number, name, price, invalid in rows
    }
