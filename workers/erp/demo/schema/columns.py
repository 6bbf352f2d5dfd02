"""Building blocks of the demo's tables: one function per kind of column, one per kind of table."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    column,
)
from sqlalchemy.schema import SchemaItem

from staging.storage.dialect import ExactDecimal, IdString, UtcDateTime, db_now, sortable

demo_metadata = MetaData()

# The whole table compares by code point: in MariaDB's default collation all emoji are one and the same name.
_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}

PRICE = ExactDecimal(18, 4)
QUANTITY = ExactDecimal(18, 3)
AMOUNT = ExactDecimal(18, 2)
RATE = ExactDecimal(6, 4)


def ident(name: str, *, required: bool = False) -> Column[str]:
    """A key of ours or of another table."""
    return Column(name, IdString(64), nullable=not required)


def code(name: str) -> Column[str]:
    """A number people use: document number, SKU, customer number."""
    return Column(name, IdString(50), nullable=False)


def words(name: str, length: int, *, required: bool = False) -> Column[str]:
    return Column(name, String(length), nullable=not required)


def memo(name: str = "sMemo") -> Column[str]:
    return Column(name, Text)


def whole(name: str) -> Column[int]:
    return Column(name, Integer)


def flag(name: str) -> Column[int]:
    """1 or 0, as these ERPs keep their booleans."""
    return Column(name, SmallInteger, nullable=False, server_default="0")


def day(name: str) -> Column[Any]:
    return Column(name, Date)


def moment(name: str) -> Column[Any]:
    return Column(name, UtcDateTime)


def exact(name: str, kind: ExactDecimal, default: str | None = "0") -> Column[Decimal]:
    """An exact decimal; ``default`` None: the row must say it."""
    if default is None:
        return Column(name, kind, nullable=False)
    text = (
        f"{Decimal(default):.{kind.scale}f}"  # SQLite keeps it as text, so the default has its full scale too
    )
    return Column(name, kind, nullable=False, server_default=text)


def at_least(name: str, floor: str, *, above: bool = False) -> CheckConstraint:
    """CHECK ``name`` >= (``above``: >) ``floor``. The constraint is named by ``table``."""
    bound = sortable(column(name))
    return CheckConstraint(bound > int(floor) if above else bound >= int(floor), name=f"{name}_min")


def at_most(name: str, other: str) -> CheckConstraint:
    """CHECK ``name`` <= ``other``, both decimal columns."""
    return CheckConstraint(sortable(column(name)) <= sortable(column(other)), name=f"{name}_max")


def _owner() -> list[SchemaItem]:
    return [
        ident("sId", required=True),
        ident("sBrandsId", required=True),
        ident("sSubsidiaryId", required=True),
    ]


def _made() -> list[SchemaItem]:
    return [
        ident("sMakePerson", required=True),
        Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
        ident("sModifyPerson"),
        moment("tModifyDate"),
    ]


def _state(name: str, word: str) -> list[SchemaItem]:
    return [flag(f"b{name}"), ident(f"s{word}Person"), moment(f"t{word}Date")]


def table(name: str, *items: SchemaItem) -> Table:
    """A table with ``sId`` as primary key; CHECKs among ``items`` get the table's name in front."""
    for item in items:
        if isinstance(item, CheckConstraint):
            item.name = f"ck_{name}_{item.name}"
    return Table(name, demo_metadata, *items, PrimaryKeyConstraint("sId", name=f"pk_{name}"), **_MYSQL)


def system_table(name: str, *items: SchemaItem) -> Table:
    """A tenant's table without maker or state."""
    return table(name, *_owner(), *items)


def master_table(name: str, number: str, *items: SchemaItem) -> Table:
    """Master data: made by somebody, may be invalid, has a number unique in its tenant."""
    unique = Index(f"uq_{name}_{number}", "sBrandsId", "sSubsidiaryId", number, unique=True)
    return table(name, *_owner(), code(number), *items, *_made(), *_state("Invalid", "Invalid"), unique)


def document_table(name: str, *items: SchemaItem) -> Table:
    """A document: numbered, made, examined, perhaps invalid."""
    return table(
        name,
        *_owner(),
        code("sBillNo"),
        *items,
        memo(),
        *_made(),
        *_state("Check", "Check"),
        *_state("Invalid", "Invalid"),
        Index(f"uq_{name}_bill_no", "sBrandsId", "sSubsidiaryId", "sBillNo", unique=True),
        Index(f"ix_{name}_newest", "sBrandsId", "sSubsidiaryId", "tCreateDate"),
    )


def line_table(name: str, *items: SchemaItem) -> Table:
    """Lines below a document, in the order of ``iOrder``."""
    return table(
        name,
        *_owner(),
        ident("sParentId", required=True),
        Column("iOrder", Integer, nullable=False, server_default="1"),
        *items,
        Index(f"ix_{name}_parent", "sParentId", "iOrder"),
    )
