"""Collects the rows of one tenant: ids, document numbers by month, and when each row was made."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from sqlalchemy import Table

Row = dict[str, Any]


@dataclass
class Rows:
    """Rows of every table in the order they were made; parents come before their lines."""

    tables: dict[Table, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def insert(self, table: Table, **values: Any) -> Row:
        self.tables[table].append(values)
        return values


@dataclass
class TenantRows:
    """Writes into ``rows`` for one tenant, drawing from ``random``."""

    rows: Rows
    random: Random
    brands: str
    subsidiary: str = "S01"
    _ids: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _numbers: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def next_id(self, kind: str) -> str:
        """``B001-cus-0001``: ids nobody needs to read, but that read well in a test."""
        self._ids[kind] += 1
        return f"{self.brands}-{kind}-{self._ids[kind]:04d}"

    def number(self, prefix: str, width: int, on: date | None = None) -> str:
        """The next number of a rule such as ``BJD{yyyyMM}{seq:3}`` (with ``on``) or ``KH{seq:4}`` (without)."""
        scope = f"{prefix}{on:%Y%m}" if on else prefix
        self._numbers[scope] += 1
        return f"{scope}{self._numbers[scope]:0{width}d}"

    def moment(self, on: date) -> datetime:
        """A moment of that day's working hours in China."""
        start = datetime.combine(on, time(0, 30), UTC)
        return start + timedelta(minutes=self.random.randrange(0, 9 * 60), seconds=self.random.randrange(60))

    def row(self, table: Table, kind: str, **values: Any) -> Row:
        return self.rows.insert(
            table,
            sId=self.next_id(kind),
            sBrandsId=self.brands,
            sSubsidiaryId=self.subsidiary,
            **values,
        )

    def master(self, table: Table, kind: str, maker: str, on: date, **values: Any) -> Row:
        return self.row(
            table,
            kind,
            sMakePerson=maker,
            tCreateDate=self.moment(on),
            bInvalid=0,
            sInvalidPerson=None,
            tInvalidDate=None,
            **values,
        )

    def document(self, table: Table, kind: str, prefix: str, maker: str, on: date, **values: Any) -> Row:
        """A document that is neither examined nor invalid; see ``examine`` and ``invalidate``."""
        return self.master(
            table,
            kind,
            maker,
            on,
            sBillNo=self.number(prefix, 3, on),
            bCheck=0,
            sCheckPerson=None,
            tCheckDate=None,
            **values,
        )

    def line(self, table: Table, kind: str, parent: Row, order: int, **values: Any) -> Row:
        return self.row(table, kind, sParentId=parent["sId"], iOrder=order, **values)

    def examine(self, document: Row, by: str) -> None:
        document.update(bCheck=1, sCheckPerson=by, tCheckDate=document["tCreateDate"] + timedelta(hours=2))

    def invalidate(self, document: Row, by: str) -> None:
        document.update(
            bInvalid=1, sInvalidPerson=by, tInvalidDate=document["tCreateDate"] + timedelta(hours=3)
        )


def rounded(value: Decimal, places: int = 2) -> Decimal:
    """``value`` to ``places`` decimals, half up, as the forms compute amounts."""
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
