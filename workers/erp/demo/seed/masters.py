"""Customers, suppliers, warehouses, products and projects of one tenant."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from sqlalchemy import Table

from workers.erp.demo.schema import masters, products
from workers.erp.demo.seed import wordlist as w
from workers.erp.demo.seed.rows import Row, TenantRows, rounded

AMBIGUOUS_CUSTOMER = "上海云帆文化传播有限公司"
"""Two customers of B001 carry this name (KH0001 and KH0002)."""

OPENED = date(2026, 1, 4)
_TIERS = ((Decimal(100), Decimal("0.95")), (Decimal(500), Decimal("0.9")), (Decimal(1000), Decimal("0.85")))
_WAREHOUSES = (
    *(("原纸仓", "material"), ("辅料仓", "material"), ("成品一仓", "finished"), ("成品二仓", "finished")),
    ("不良品仓", "defective"),
)


@dataclass
class Masters:
    """What documents choose from. ``materials`` and ``goods`` are products."""

    customers: list[Row] = field(default_factory=list)
    suppliers: list[Row] = field(default_factory=list)
    warehouses: list[Row] = field(default_factory=list)
    materials: list[Row] = field(default_factory=list)
    goods: list[Row] = field(default_factory=list)
    tiers: dict[str, list[Row]] = field(default_factory=dict)


def add_masters(
    tenant: TenantRows, maker: str, customers: int, suppliers: int, materials: int, goods: int
) -> Masters:
    """So many of each; the first of each kind are the same whatever the seed."""
    made = Masters()
    made.customers = [_customer(tenant, maker, index) for index in range(customers)]
    made.suppliers = [_supplier(tenant, maker, index) for index in range(suppliers)]
    for name, kind in _WAREHOUSES:
        number = tenant.number("CK", 2)
        values = {"sWarehouseName": name, "sWarehouseType": kind, "sAddress": _address(tenant, "苏州")}
        made.warehouses.append(
            tenant.master(masters.warehouse, "wh", maker, OPENED, sWarehouseNo=number, **values)
        )
    paper_room, supply_room, goods_room = made.warehouses[:3]
    # Goods first, so that CP00001 is something one can sell.
    for index in range(goods):
        _goods(tenant, maker, index, made, goods_room)
    for values in _materials(tenant)[:materials]:
        room = paper_room if values["sProductType"] == "paper" else supply_room
        made.materials.append(_product(tenant, maker, room, **values))
    _projects(tenant, maker, made, customers // 3)
    return made


def _person(tenant: TenantRows) -> str:
    return tenant.random.choice(w.SURNAMES) + tenant.random.choice(w.GIVEN)


def _phone(tenant: TenantRows) -> str:
    return f"1{tenant.random.choice('3578')}{tenant.random.randrange(10**9):09d}"


def _address(tenant: TenantRows, city: str) -> str:
    return f"{city}市{tenant.random.choice(w.STREETS)}{tenant.random.randrange(1, 999)}号"


def _partner(tenant: TenantRows, table: Table, kind: str, maker: str, city: str, **values: object) -> Row:
    on = OPENED + timedelta(days=tenant.random.randrange(0, 200))
    return tenant.master(
        table,
        kind,
        maker,
        on,
        sContact=_person(tenant),
        sPhone=_phone(tenant),
        sAddress=_address(tenant, city),
        iPaymentDays=tenant.random.choice((0, 30, 45, 60, 90)),
        **values,
    )


def _customer(tenant: TenantRows, maker: str, index: int) -> Row:
    stem = w.CUSTOMER_STEMS[index % len(w.CUSTOMER_STEMS)]
    trade = w.CUSTOMER_TRADES[(index + index // len(w.CUSTOMER_STEMS)) % len(w.CUSTOMER_TRADES)]
    city = w.CITIES[index % len(w.CITIES)]
    name = f"{city}{stem}{trade}有限公司"
    if index == 1 and tenant.brands == "B001":
        name, city = AMBIGUOUS_CUSTOMER, "杭州"
    return _partner(
        tenant,
        masters.customer,
        "cus",
        maker,
        city,
        sCustomerNo=tenant.number("KH", 4),
        sCustomerName=name,
        sCustomerType=tenant.random.choice(("direct", "direct", "agent", "online")),
        sCity=city,
        dCreditLimit=Decimal(tenant.random.randrange(1, 40) * 10_000),
        sMemo=None,
    )


def _supplier(tenant: TenantRows, maker: str, index: int) -> Row:
    kind = tuple(w.SUPPLIER_TRADES)[index % len(w.SUPPLIER_TRADES)]
    city = w.CITIES[(index * 5 + index // 12) % len(w.CITIES)]
    return _partner(
        tenant,
        masters.supplier,
        "sup",
        maker,
        city,
        sSupplierNo=tenant.number("GY", 4),
        sSupplierName=f"{city}{w.SUPPLIER_STEMS[index % len(w.SUPPLIER_STEMS)]}{w.SUPPLIER_TRADES[kind]}有限公司",
        sSupplierType=kind,
        sBankName=f"{city}市商业银行",
        sBankAccount=f"62{tenant.random.randrange(10**15):015d}",
        sMemo=None,
    )


def _product(tenant: TenantRows, maker: str, room: Row, **values: object) -> Row:
    base: Row = {"sSpec": None, "iGramWeight": None, "sSheetSize": None, "sProcess": None, "sMemo": None}
    base["sWarehouseId"] = room["sId"]
    number = tenant.number("CP", 5)
    return tenant.master(products.product, "pro", maker, OPENED, **{**base, **values}, sProductNo=number)


def _materials(tenant: TenantRows) -> list[Row]:
    found: list[Row] = []
    for name, weights, per_kg in w.PAPERS:
        for grams in weights:
            for sheet, size, square_metres in w.SHEETS:
                price = rounded(per_kg * grams * square_metres / 1000, 4)
                found.append(
                    _material(f"{name}{grams}g{sheet}", "paper", "张", price, 5000)
                    | {"sSpec": f"{grams}g {size}mm", "iGramWeight": grams, "sSheetSize": size}
                )
    for name in w.INKS:
        price = Decimal(tenant.random.randrange(3500, 12000)) / 100
        found.append(_material(name, "ink", "公斤", price, 20) | {"sSpec": "2.5公斤/罐"})
    for name, unit in w.ACCESSORIES:
        price = Decimal(tenant.random.randrange(30, 4500)) / 100
        found.append(_material(name, "accessory", unit, price, 50))
    tenant.random.shuffle(found)
    return found


def _material(name: str, kind: str, unit: str, price: Decimal, minimum: int) -> Row:
    return {
        "sProductName": name,
        "sProductType": kind,
        "sUnit": unit,
        "dPrice": price,
        "dCost": rounded(price * Decimal("0.92"), 4),
        "dMinStock": Decimal(minimum),
    }


def _goods(tenant: TenantRows, maker: str, index: int, made: Masters, room: Row) -> None:
    name, size, process, unit, fen = w.GOODS[index % len(w.GOODS)]
    series = w.SERIES[index // len(w.GOODS) % len(w.SERIES)]
    price = rounded(Decimal(fen) / 100 * (1 + Decimal(index // len(w.GOODS)) / 20), 4)
    product = _product(
        tenant,
        maker,
        room,
        sProductName=f"{series}系列{name}",
        sProductType="finished",
        sSpec=size,
        sProcess=process,
        sUnit=unit,
        dPrice=price,
        dCost=rounded(price * Decimal("0.6"), 4),
        dMinStock=Decimal(50),
    )
    made.goods.append(product)
    if index % 4 != 3:  # one in four has no quantity discount
        made.tiers[product["sId"]] = [
            tenant.line(
                products.product_tier, "tier", product, order, dMinQuantity=minimum, dDiscount=discount
            )
            for order, (minimum, discount) in enumerate(_TIERS, 1)
        ]
    listed = index % 7 != 6  # one in seven is off sale
    moment = product["tCreateDate"]
    tenant.master(
        products.listing,
        "lst",
        maker,
        OPENED,
        sListingNo=tenant.number("SJ", 5),
        sProductId=product["sId"],
        sTitle=f"{product['sProductName']} {size}",
        bListed=int(listed),
        sListPerson=maker if listed else None,
        tListDate=moment if listed else None,
        sUnlistPerson=None,
        tUnlistDate=None,
    )


def _projects(tenant: TenantRows, maker: str, made: Masters, count: int) -> None:
    for index in range(count):
        phase = tenant.random.choice(("draft", "rendering", "done"))
        script = w.SCRIPTS[index % len(w.SCRIPTS)]
        avatar = tenant.random.choice(w.AVATARS)
        on = OPENED + timedelta(days=index * 9)
        tenant.master(
            masters.project,
            "prj",
            maker,
            on,
            sProjectNo=tenant.number("SZR", 3, on),
            sTitle=f"{script}第{index // len(w.SCRIPTS) + 1}期",
            sCustomerId=tenant.random.choice(made.customers)["sId"] if index % 3 == 0 else None,
            sAvatar=avatar,
            sVoice=tenant.random.choice(w.VOICES),
            sPhase=phase,
            iDurationSeconds=tenant.random.randrange(15, 300) if phase == "done" else 0,
            sScript=f"大家好，我是{avatar}，今天和大家聊聊{script}。",
        )
