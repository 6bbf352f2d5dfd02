"""Today's prices, as a sales order of today would have them. Nothing is reserved and nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Annotated, Any

from staging.contracts.error import Wire
from staging.contracts.query import QueryWarning
from workers.erp.demo.handlers.catalogue import Product
from workers.erp.demo.handlers.pricing import Priced, priced
from workers.erp.demo.queries.shapes import Amount, Factor, Price, Quantity
from workers.erp.query import QueryContext, says
from workers.erp.sql.coerce import exact_decimal

_PRECISION = 60  # a price of 18 digits times a quantity of 18
MOST_QUANTITY = 1_000_000_000
_FACTOR_UNIT = Decimal("0.0001")
Pieces: Any = Annotated[
    exact_decimal(3), says("数量", "Quantity", "大于0", "above 0", gt=0, le=MOST_QUANTITY)
]


class PricedRow(Wire):
    """What every quoted row says."""

    product: Annotated[str, says("产品 id", "Product id")]
    product_no: Annotated[str, says("产品编号", "SKU")]
    product_name: Annotated[str, says("产品", "Product")]
    on_sale: Annotated[
        bool, says("已上架", "On sale", "未上架不能下单", "what is not on sale cannot be ordered")
    ]
    quantity: Annotated[Quantity, says("数量", "Quantity")]
    list_price: Annotated[Price, says("今日标价", "List price today")]
    discount: Annotated[
        Factor, says("折扣率", "Factor", "达到的最高数量档", "of the highest quantity step reached")
    ]
    price: Annotated[Price, says("折后单价", "Price after discount")]
    amount: Annotated[Amount, says("金额", "Amount")]


def priced_today(product: Product, quantity: Decimal) -> Priced:
    """Price of ``quantity`` pieces if an order takes just these of the product."""
    with localcontext(prec=_PRECISION):
        return priced(product.price, product.steps, quantity, quantity)


def told(product: Product, quantity: Decimal, cost: Priced) -> dict[str, object]:
    """The fields of a ``PricedRow``."""
    return {
        "product": product.key,
        "product_no": product.number,
        "product_name": product.name,
        "on_sale": product.on_sale,
        "quantity": quantity,
        "list_price": cost.list_price,
        "discount": cost.factor.quantize(_FACTOR_UNIT),
        "price": cost.price,
        "amount": cost.amount,
    }


def caveats(context: QueryContext, products: Iterable[Product]) -> list[QueryWarning]:
    """What an asker must know: of what day the prices are, that nothing is reserved, what cannot be ordered."""
    zh = context.actor.locale == "zh"
    today = context.today.isoformat()
    warnings = [
        QueryWarning(
            code="not_reserved",
            message=f"{today} 的价格，未预留库存；下单时以届时价格为准"
            if zh
            else f"Prices of {today}; no stock is reserved, an order has the prices of its own day",
        )
    ]
    off = sorted(p.number for p in products if not p.on_sale)
    if off:
        message = (
            f"未上架，不能下单：{'、'.join(off)}"
            if zh
            else f"Not on sale, cannot be ordered: {', '.join(off)}"
        )
        warnings.append(QueryWarning(code="not_on_sale", message=message))
    return warnings
