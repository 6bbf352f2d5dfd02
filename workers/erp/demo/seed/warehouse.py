"""Opening stock, inbounds, outbounds and adjustments of the seeded year."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from workers.erp.demo.schema import stock
from workers.erp.demo.seed.masters import OPENED
from workers.erp.demo.seed.rows import Row
from workers.erp.demo.seed.year import Document, Year

Moved = tuple[Row, str, Decimal, Row | None]
"""Product, warehouse id, quantity, and the purchase order line it fulfils."""


def opening_stock(year: Year) -> None:
    """One examined inbound per warehouse: where the counting starts."""
    here = [(product["sWarehouseId"], product) for product in (*year.masters.materials, *year.masters.goods)]
    overflow = [(year.masters.warehouses[3]["sId"], product) for product in year.masters.goods[::3]]
    placed = [*here, *overflow]
    for warehouse in dict.fromkeys(where for where, _ in placed):
        moved: list[Moved] = []
        for where, product in placed:
            if where == warehouse:
                first = product is year.masters.goods[0]
                moved.append((product, warehouse, Decimal(1000) if first else year.hundreds(3, 60), None))
        _inbound_document(year, OPENED + timedelta(days=1), "opening", moved)


def inbound(year: Year, on: date) -> None:
    ready = [d for d in year.orders if d.row["bCheck"] and not d.lines[0]["dReceivedQuantity"]]
    if not ready:
        return
    order = ready[0]
    by_id = {product["sId"]: product for product in year.masters.materials}
    moved: list[Moved] = []
    for line in order.lines:
        product = by_id[line["sProductId"]]
        quantity = line["dQuantity"] if year.chance(80) else line["dQuantity"] / 2
        moved.append((product, product["sWarehouseId"], quantity, line))
    _inbound_document(year, on, "purchase", moved, order, examined=year.chance(85))


def outbound(year: Year, on: date) -> None:
    ready = [d for d in year.sales if d.row["bCheck"] and not d.lines[0]["dOutQuantity"]]
    if not ready:
        return
    order = ready[0]
    document = year.tenant.document(
        stock.outbound,
        "out",
        "CKD",
        year.staff["keeper"],
        on,
        sOutboundType="sale",
        sCustomerId=order.row["sCustomerId"],
        sSalesOrderId=order.row["sId"],
        tOutboundDate=on,
    )
    examined = year.chance(80)
    for index, line in enumerate(order.lines, 1):
        quantity = line["dQuantity"]
        line["dOutQuantity"] += quantity
        place = {"sProductId": line["sProductId"], "sWarehouseId": line["sWarehouseId"]}
        year.tenant.line(
            stock.outbound_line,
            "outl",
            document,
            index,
            **place,
            dQuantity=quantity,
            sSourceLineId=line["sId"],
        )
        if examined:
            year.book.reserve(line["sWarehouseId"], line["sProductId"], -quantity)
            year.book.add(line["sWarehouseId"], line["sProductId"], -quantity)
    if examined:
        year.tenant.examine(document, year.staff["keeper"])


def adjustment(year: Year, on: date) -> None:
    product = year.tenant.random.choice(year.masters.goods)
    warehouse = year.masters.warehouses[2]
    place = (warehouse["sId"], product["sId"])
    delta = Decimal(year.tenant.random.randrange(-20, 20) or 1)
    if year.book.free(*place) + delta < 0:
        return
    before = year.book.quantity(*place)
    document = year.tenant.document(
        stock.adjustment,
        "adj",
        "TZD",
        year.staff["keeper"],
        on,
        sProductId=product["sId"],
        sWarehouseId=warehouse["sId"],
        dDelta=delta,
        dBeforeQuantity=before,
        dAfterQuantity=before + delta,
        sReason="count_gain" if delta > 0 else year.tenant.random.choice(("count_loss", "damage")),
    )
    year.book.add(*place, delta)
    year.tenant.examine(document, year.staff["keeper"])


def _inbound_document(
    year: Year,
    on: date,
    kind: str,
    moved: list[Moved],
    order: Document | None = None,
    examined: bool = True,
) -> None:
    document = year.tenant.document(
        stock.inbound,
        "inb",
        "RKD",
        year.staff["keeper"],
        on,
        sInboundType=kind,
        sSupplierId=order.row["sSupplierId"] if order else None,
        sPurchaseOrderId=order.row["sId"] if order else None,
        sDeliveryNoteNo=f"SH{on:%m%d}{year.tenant.random.randrange(1000, 9999)}" if order else None,
        tInboundDate=on,
    )
    for index, (product, warehouse, quantity, source) in enumerate(moved, 1):
        year.tenant.line(
            stock.inbound_line,
            "inbl",
            document,
            index,
            sProductId=product["sId"],
            sWarehouseId=warehouse,
            dQuantity=quantity,
            sSourceLineId=source["sId"] if source else None,
            sBatchNo=f"{on:%Y%m%d}-{index:02d}",
        )
        if source:
            source["dReceivedQuantity"] += quantity
        if examined:
            year.book.add(warehouse, product["sId"], quantity)
    if examined:
        year.tenant.examine(document, year.staff["keeper"])
