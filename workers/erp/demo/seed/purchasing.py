"""Requisitions, purchase orders and outsourcing of the seeded year."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from workers.erp.demo.schema import trade
from workers.erp.demo.seed import wordlist as w
from workers.erp.demo.seed.rows import Row, rounded
from workers.erp.demo.seed.year import VAT, ZERO, Document, Year


def requisition(year: Year, on: date) -> None:
    document = year.tenant.document(
        trade.requisition,
        "req",
        "QGD",
        year.staff["buyer"],
        on,
        sDepartment=year.tenant.random.choice(("生产部", "印前部", "后道车间", "仓储部")),
        tNeedDate=on + timedelta(days=14),
        sReason=year.tenant.random.choice(w.REASONS),
        bUrgent=int(year.chance(20)),
        dTotalAmount=ZERO,
    )
    made = Document(document, [])
    for index, product in enumerate(year.tenant.random.sample(year.masters.materials, 3), 1):
        quantity, price = year.hundreds(1, 80), product["dCost"]
        amount = rounded(quantity * price)
        document["dTotalAmount"] += amount
        made.lines.append(
            year.tenant.line(
                trade.requisition_line,
                "reql",
                document,
                index,
                sProductId=product["sId"],
                dQuantity=quantity,
                dPrice=price,
                dAmount=amount,
                dOrderedQuantity=ZERO,
            )
        )
    year.settle(document)
    year.requisitions.append(made)


def purchase_order(year: Year, on: date) -> None:
    open_ = [d for d in year.requisitions if d.row["bCheck"] and not d.lines[0]["dOrderedQuantity"]]
    source = open_[0] if open_ and year.chance(70) else None
    document = year.tenant.document(
        trade.purchase_order,
        "pur",
        "CGD",
        year.staff["buyer"],
        on,
        sSupplierId=year.tenant.random.choice(year.masters.suppliers)["sId"],
        sRequisitionId=source.row["sId"] if source else None,
        tOrderDate=on,
        tDeliveryDate=on + timedelta(days=10),
        sPayTerm="monthly",
        dTaxRate=VAT,
        dTotalAmount=ZERO,
    )
    wanted: list[tuple[str, Decimal, Decimal, Row | None]]
    if source:
        wanted = [(line["sProductId"], line["dQuantity"], line["dPrice"], line) for line in source.lines]
    else:
        chosen = year.tenant.random.sample(year.masters.materials, 2)
        wanted = [(p["sId"], year.hundreds(1, 60), p["dCost"], None) for p in chosen]
    made = Document(document, [])
    for index, (product, quantity, price, line) in enumerate(wanted, 1):
        amount = rounded(quantity * price)
        document["dTotalAmount"] += amount
        if line is not None:
            line["dOrderedQuantity"] += quantity
        made.lines.append(
            year.tenant.line(
                trade.purchase_order_line,
                "purl",
                document,
                index,
                sProductId=product,
                dQuantity=quantity,
                dPrice=price,
                dAmount=amount,
                dReceivedQuantity=ZERO,
                sSourceLineId=line["sId"] if line is not None else None,
            )
        )
    if source or year.chance(80):
        year.tenant.examine(document, year.staff["manager"])
    year.orders.append(made)


def outsource_order(year: Year, on: date) -> None:
    suppliers = [s for s in year.masters.suppliers if s["sSupplierType"] == "outsource"]
    document = year.tenant.document(
        trade.outsource_order,
        "ous",
        "WWD",
        year.staff["buyer"],
        on,
        sSupplierId=year.tenant.random.choice(suppliers)["sId"],
        tOrderDate=on,
        tDeliveryDate=on + timedelta(days=5),
        dTotalAmount=ZERO,
    )
    for index, product in enumerate(year.tenant.random.sample(year.masters.goods, 2), 1):
        quantity = year.hundreds(5, 60)
        price = Decimal(year.tenant.random.randrange(5, 300)) / 100
        document["dTotalAmount"] += rounded(quantity * price)
        year.tenant.line(
            trade.outsource_order_line,
            "ousl",
            document,
            index,
            sProductId=product["sId"],
            sProcess=year.tenant.random.choice(w.OUTSOURCED),
            dQuantity=quantity,
            dPrice=price,
            dAmount=rounded(quantity * price),
        )
    year.settle(document)
