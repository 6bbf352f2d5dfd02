"""``quote``: what products cost a customer today, in the quantities they ask for."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from staging.contracts.error import Wire
from staging.contracts.query import AppliedSort
from staging.domain.query import Plan
from workers.erp.demo.handlers.catalogue import read_products
from workers.erp.demo.handlers.inputs import ShortText
from workers.erp.demo.queries.names import Asked, keys_of, texts_of
from workers.erp.demo.queries.quoting import Pieces, PricedRow, caveats, priced_today, told
from workers.erp.demo.queries.shapes import BY_NAME, Amount, Factor, Quantity
from workers.erp.query import Found, QueryContext, says, sorted_page

_MOST_LINES = 200


class QuoteLine(Wire):
    product: Annotated[ShortText, says("产品", "Product", *BY_NAME)]
    quantity: Pieces


class QuoteFilter(Wire):
    customer: Annotated[ShortText, says("客户", "Customer", *BY_NAME)]
    lines: Annotated[
        list[QuoteLine],
        says("明细", "Lines", "同一产品的数量相加", "quantities of one product are added up"),
        Field(min_length=1, max_length=_MOST_LINES),
    ]


class QuoteRow(PricedRow):
    customer: Annotated[str, says("客户 id", "Customer id")]
    customer_name: Annotated[str, says("客户", "Customer")]
    quote_total: Annotated[
        Amount, says("报价合计", "Total of the quote", "所有行，不只本页", "of all rows, on any page")
    ]
    next_quantity: Annotated[Quantity | None, says("下一档起订数量", "Next step from quantity")] = None
    next_discount: Annotated[Factor | None, says("下一档折扣率", "Factor of the next step")] = None


class Quote:
    Filter: ClassVar[type[BaseModel]] = QuoteFilter
    Row: ClassVar[type[BaseModel]] = QuoteRow
    sortable = ("productNo", "quantity", "price", "amount")
    unique = "product"
    default_sort = (AppliedSort(field="productNo", direction="ASC"),)

    def find(self, context: QueryContext, asked: QuoteFilter, plan: Plan) -> Found:
        names = [
            Asked("customer", asked.customer),
            *(Asked("product", line.product, f"filter.lines[{n}]") for n, line in enumerate(asked.lines)),
        ]
        customer, *keys = keys_of(context, names, valid_only=True)
        wanted: dict[str, Decimal] = defaultdict(Decimal)
        for key, line in zip(keys, asked.lines, strict=True):
            wanted[key] += line.quantity
        products = read_products(context, wanted)
        costs = {key: priced_today(products[key], quantity) for key, quantity in wanted.items()}
        total = sum((cost.amount for cost in costs.values()), Decimal(0))
        customer_name = texts_of(context, [customer]).record("customer", customer)
        rows = []
        for key, quantity in wanted.items():
            step = next((s for s in products[key].steps if s.minimum > quantity), None)
            rows.append(
                QuoteRow.model_validate(
                    told(products[key], quantity, costs[key])
                    | {
                        "customer": customer,
                        "customer_name": customer_name,
                        "quote_total": total,
                        "next_quantity": step.minimum if step else None,
                        "next_discount": step.factor if step else None,
                    }
                )
            )
        return Found(sorted_page(rows, plan), len(rows), caveats(context, products.values()))
