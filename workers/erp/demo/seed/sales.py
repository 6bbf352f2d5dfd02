"""Quotations and sales orders of the seeded year."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from workers.erp.demo.schema import trade
from workers.erp.demo.seed import wordlist as w
from workers.erp.demo.seed.rows import Row, rounded
from workers.erp.demo.seed.year import VAT, ZERO, Document, Year


def quotation(year: Year, on: date) -> None:
    customer = year.tenant.random.choice(year.masters.customers)
    document = year.tenant.document(
        trade.quotation,
        "quo",
        "BJD",
        year.staff["sales"],
        on,
        sCustomerId=customer["sId"],
        sTitle=f"{year.tenant.random.choice(w.SERIES)}{year.tenant.random.choice(w.QUOTE_TITLES)}",
        sContact=customer["sContact"],
        tQuoteDate=on,
        tDeliveryDate=on + timedelta(days=year.tenant.random.randrange(10, 40)),
        iValidDays=30,
        sPayTerm=year.tenant.random.choice(("prepaid", "monthly", "on_delivery")),
        dTaxRate=VAT,
        dTotalAmount=ZERO,
    )
    quantity = year.hundreds(5, 50)
    parts = year.tenant.random.sample(w.PARTS, year.tenant.random.randrange(1, 4))
    for index, part in enumerate(parts, 1):
        document["dTotalAmount"] += _quotation_part(year, document, index, part, quantity)
    year.settle(document, 60)


def _quotation_part(
    year: Year, document: Row, index: int, part: tuple[str, str, int, str, str], quantity: Decimal
) -> Decimal:
    name, material, grams, color, process = part
    price = Decimal(year.tenant.random.randrange(800, 60_000)) / 10_000
    amount = rounded(quantity * price)
    row = year.tenant.line(
        trade.quotation_part,
        "quop",
        document,
        index,
        sPartName=name,
        sMaterial=material,
        iGramWeight=grams,
        sSheetSize=year.tenant.random.choice(("787×1092", "889×1194")),
        sColor=color,
        sProcess=process,
        dQuantity=quantity,
        dPrice=price,
        dAmount=amount,
    )
    for order, (times, percent) in enumerate(((1, 100), (2, 92), (5, 85)), 1):
        tier_price = rounded(price * percent / 100, 4)
        year.tenant.line(
            trade.quotation_tier,
            "quot",
            row,
            order,
            dQuantity=quantity * times,
            dPrice=tier_price,
            dAmount=rounded(quantity * times * tier_price),
        )
    return amount


def sales_order(year: Year, on: date) -> None:
    customer = year.tenant.random.choice(year.masters.customers)
    warehouse = year.masters.warehouses[2]
    chosen = sorted(year.tenant.random.sample(year.masters.goods, 3), key=lambda p: str(p["sProductNo"]))
    wanted = [(product, Decimal(year.tenant.random.randrange(10, 200))) for product in chosen]
    wanted = [(p, q) for p, q in wanted if year.book.free(warehouse["sId"], p["sId"]) >= q]
    if not wanted:
        return
    document = year.tenant.document(
        trade.sales_order,
        "sal",
        "XSD",
        year.staff["sales"],
        on,
        sCustomerId=customer["sId"],
        sCustomerPoNo=f"PO-{on:%y%m%d}-{year.tenant.random.randrange(100, 999)}",
        tOrderDate=on,
        tDeliveryDate=on + timedelta(days=7),
        sAddress=customer["sAddress"],
        dTotalAmount=ZERO,
        sCancelReason=None,
    )
    made = Document(document, [])
    for index, (product, quantity) in enumerate(wanted, 1):
        made.lines.append(_sales_line(year, document, index, product, warehouse, quantity))
    if year.chance(10):
        year.tenant.invalidate(document, year.staff["sales"])
        document["sCancelReason"] = "客户取消"
        return
    for line in made.lines:
        year.book.reserve(line["sWarehouseId"], line["sProductId"], line["dQuantity"])
    if year.chance(85):
        year.tenant.examine(document, year.staff["manager"])
    year.sales.append(made)


def _sales_line(
    year: Year, document: Row, index: int, product: Row, warehouse: Row, quantity: Decimal
) -> Row:
    steps = year.masters.tiers.get(product["sId"], [])
    reached = [step["dDiscount"] for step in steps if step["dMinQuantity"] <= quantity]
    discount: Decimal = min(reached, default=Decimal(1))
    price = rounded(product["dPrice"] * discount, 4)
    amount = rounded(quantity * price)
    document["dTotalAmount"] += amount
    return year.tenant.line(
        trade.sales_order_line,
        "sall",
        document,
        index,
        sProductId=product["sId"],
        sWarehouseId=warehouse["sId"],
        dQuantity=quantity,
        dListPrice=product["dPrice"],
        dDiscount=discount,
        dPrice=price,
        dAmount=amount,
        dOutQuantity=ZERO,
    )
