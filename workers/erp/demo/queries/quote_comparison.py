"""``quote_comparison``: today's prices of several products in several quantities, each pair by itself."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from staging.contracts.error import Wire
from staging.contracts.query import AppliedSort
from staging.domain.canonical import decimal_text
from staging.domain.query import Plan
from workers.erp.demo.handlers.catalogue import read_products
from workers.erp.demo.handlers.inputs import ShortText
from workers.erp.demo.queries.names import Asked, keys_of
from workers.erp.demo.queries.quoting import Pieces, PricedRow, caveats, priced_today, told
from workers.erp.demo.queries.shapes import BY_NAME, Names
from workers.erp.query import Found, QueryContext, says, sorted_page

_MOST_QUANTITIES = 20


class ComparisonFilter(Wire):
    customer: Annotated[ShortText, says("客户", "Customer", *BY_NAME)]
    product: Annotated[Names, says("产品", "Products", *BY_NAME)]
    quantity: Annotated[
        list[Pieces],
        says("数量", "Quantities", "每个产品各按这些数量报价", "each product is priced in each of them"),
        Field(min_length=1, max_length=_MOST_QUANTITIES),
    ]


class ComparisonRow(PricedRow):
    id: str
    """Product and quantity."""


class QuoteComparison:
    Filter: ClassVar[type[BaseModel]] = ComparisonFilter
    Row: ClassVar[type[BaseModel]] = ComparisonRow
    sortable = ("productNo", "quantity", "price", "amount")
    unique = "id"
    default_sort = (
        AppliedSort(field="productNo", direction="ASC"),
        AppliedSort(field="quantity", direction="ASC"),
    )

    def find(self, context: QueryContext, asked: ComparisonFilter, plan: Plan) -> Found:
        names = [Asked("customer", asked.customer), *(Asked("product", raw) for raw in asked.product)]
        _, *keys = keys_of(context, names, valid_only=True)
        products = read_products(context, set(keys))
        rows = [
            ComparisonRow.model_validate(
                told(product, quantity, priced_today(product, quantity))
                | {"id": f"{product.key}:{decimal_text(quantity)}"}
            )
            for product in products.values()
            for quantity in dict.fromkeys(asked.quantity)
        ]
        return Found(sorted_page(rows, plan), len(rows), caveats(context, products.values()))
