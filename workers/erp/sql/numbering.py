"""Document numbers: gap-free per tenant and period, allocated inside the business transaction.

One counter row per tenant and scope. The number is taken by one UPDATE (or upsert) and belongs to the transaction:
whoever comes next waits for its end, and a roll-back returns the number. So allocate late, just before the insert.

A counter that does not exist yet starts behind the documents that do: an ERP is adopted in the middle of a month. And
because its own forms go on numbering beside us, a number found taken moves the counter behind the highest one there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.sql.dml import Insert, Update

from staging.contracts.form import NumberRule
from staging.domain.identity import Tenant
from staging.storage.dialect import is_mysql, one_or_many
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.tables import counter_table

_SEQ = re.compile(r"\{seq:(\d+)\}")


@dataclass(frozen=True, slots=True)
class Series:
    """A rule with its period filled in: ``prefix`` + at least ``width`` digits + ``suffix``."""

    prefix: str
    width: int
    suffix: str

    def number(self, sequence: int) -> str:
        return f"{self.prefix}{sequence:0{self.width}d}{self.suffix}"

    def sequence(self, number: str) -> int | None:
        """The sequence in ``number``; None if it is not of this series."""
        digits = number[len(self.prefix) : len(number) - len(self.suffix)]
        if not (digits.isascii() and digits.isdigit()) or len(digits) < self.width:
            return None
        return int(digits) if number == f"{self.prefix}{digits}{self.suffix}" else None


def series_of(rule: NumberRule, today: date) -> Series:
    """Fill the period of ``today`` (the tenant's local date) into ``rule``."""
    period = {
        "{yyyyMMdd}": f"{today:%Y%m%d}",
        "{yyyyMM}": f"{today:%Y%m}",
        "{yyyy}": f"{today:%Y}",
        "{yyMM}": f"{today:%y%m}",
        "{yy}": f"{today:%y}",
    }
    text = re.sub(r"\{y+[MMdd]*\}", lambda place: period[place.group()], rule.rule)
    prefix, width, suffix = _SEQ.split(text)
    return Series(prefix, int(width), suffix)


def allocate(
    connection: Connection, counters: str, master: RowTable, rule: NumberRule, tenant: Tenant, today: date
) -> str:
    """Return the next number for a document of ``master``; the transaction holds the counter until it ends.

    ``counters`` is the catalogue's ``number_table``. Database errors (lock timeout, deadlock) come out as they are.
    """
    (number,) = allocate_all(connection, counters, master, rule, tenant, today, 1)
    return number


def allocate_all(
    connection: Connection,
    counters: str,
    master: RowTable,
    rule: NumberRule,
    tenant: Tenant,
    today: date,
    count: int,
) -> list[str]:
    """``allocate`` of ``count`` numbers, in order. Empty, and nothing allocated, where one of several is taken: where
    to go on is known only when the document before it is there; allocate and write them one by one then.
    """
    series = series_of(rule, today)
    column = master.column(rule.field)
    key = {
        "b": tenant.brands_id,
        "s": tenant.subsidiary_id,
        "scope": f"{master.table.name}.{column.name}:{series.prefix}#{series.suffix}",
    }
    statements = _statements(counters)
    last = statements.advance(connection, key, count)
    if last is None:
        start = _highest(connection, master, column, series, tenant) + count
        last = statements.create(connection, {**key, "start": start, "by": count})
    numbers = [series.number(n) for n in range(last - count + 1, last + 1)]
    if not _exist(connection, master, column, numbers, tenant):
        return numbers
    if count > 1:
        statements.move(connection, {**key, "to": last - count})
        return []
    last = _highest(connection, master, column, series, tenant) + 1
    statements.move(connection, {**key, "to": last})
    return [series.number(last)]


def hold(connection: Connection, counters: str, tenant: Tenant, scopes: Sequence[str]) -> None:
    """Keep other transactions of this tenant out of ``scopes`` until this one ends (counter rows, counted up).

    All who hold several name them in the same order.
    """
    of_tenant = {"b": tenant.brands_id, "s": tenant.subsidiary_id, "start": 1}
    if scopes:
        _statements(counters).hold(connection, [{**of_tenant, "scope": scope} for scope in scopes])


def _exist(
    connection: Connection, master: RowTable, column: Column[Any], numbers: Sequence[str], tenant: Tenant
) -> bool:
    asked = {"numbers": numbers, "b": tenant.brands_id, "s": tenant.subsidiary_id}
    return connection.execute(_look_up(column, master.brands, master.subsidiary), asked).first() is not None


@lru_cache(maxsize=256)
def _look_up(number: Column[Any], brands: Column[str] | None, subsidiary: Column[str] | None) -> Select[Any]:
    found = select(literal(1)).where(number.in_(bindparam("numbers", expanding=True))).limit(1)
    if brands is None or subsidiary is None:
        return found
    return found.where(brands == bindparam("b"), subsidiary == bindparam("s"))


def _highest(
    connection: Connection, master: RowTable, column: Column[Any], series: Series, tenant: Tenant
) -> int:
    """The highest sequence among the tenant's documents of this series, 0 if there are none.

    Wider numbers count only once the narrower ones are used up (999 → 1000), so that a number of another pattern with
    the same beginning, or one typed by hand, does not make ours jump.
    """
    length = func.char_length if is_mysql(connection.dialect) else func.length
    highest, width = 0, series.width
    while True:
        of_width: ColumnElement[bool] = and_(
            *master.of_tenant(tenant),
            column.startswith(series.prefix, autoescape=True),
            length(column) == len(series.prefix) + width + len(series.suffix),
        )
        numbers = connection.execute(select(column).where(of_width).order_by(column.desc())).scalars()
        found = next((n for n in map(series.sequence, numbers) if n is not None), None)
        if found is None:
            return highest
        highest = found
        if highest < 10**width - 1:
            return highest
        width += 1


class _Statements:
    """``advance``: + ``by``, None without a row. ``create``: insert ``start``, or + ``by`` if somebody was faster.
    ``move``: set. ``hold``: ``create`` of several, for their locks.

    Never insert-then-update on the MySQL family: two that met at the insert would each hold a shared lock there and
    deadlock in the update (1213); its upsert takes the exclusive lock at once.
    """

    def __init__(self, table: Table) -> None:
        last = table.c.iLast
        moved = last + bindparam("by", type_=last.type)
        of_key = (
            table.c.sBrandsId == bindparam("b"),
            table.c.sSubsidiaryId == bindparam("s"),
            table.c.sScope == bindparam("scope"),
        )
        row: dict[str, Any] = {
            "sBrandsId": bindparam("b"),
            "sSubsidiaryId": bindparam("s"),
            "sScope": bindparam("scope"),
            "iLast": bindparam("start"),
        }
        self._move = update(table).where(*of_key).values(iLast=bindparam("to"))
        # MariaDB has no UPDATE … RETURNING; LAST_INSERT_ID(expr) brings the value back with the statement's own answer.
        self._advance: dict[str, Update] = {
            "mysql": update(table).where(*of_key).values(iLast=func.last_insert_id(moved)),
            "other": update(table).where(*of_key).values(iLast=moved).returning(last),
        }
        pg, lite, my = pg_insert(table), sqlite_insert(table), mysql_insert(table)
        index = [c.name for c in table.primary_key.columns]
        self._create: dict[str, Insert] = {
            name: insert.values(row)
            .on_conflict_do_update(index_elements=index, set_={"iLast": moved})
            .returning(last)
            for name, insert in (("postgresql", pg), ("sqlite", lite))
        }
        self._create["mysql"] = my.values(
            {**row, "iLast": func.last_insert_id(bindparam("start"))}
        ).on_duplicate_key_update(iLast=func.last_insert_id(moved))
        # A bound value behind VALUES is more than PyMySQL's executemany understands.
        up = {"iLast": last + literal_column("1")}
        self._hold: dict[str, Insert] = {
            name: insert.values(row).on_conflict_do_update(index_elements=index, set_=up)
            for name, insert in (("postgresql", pg), ("sqlite", lite))
        }
        self._hold["mysql"] = my.values(row).on_duplicate_key_update(up)

    def advance(self, connection: Connection, key: dict[str, str], by: int) -> int | None:
        values = {**key, "by": by}
        if not is_mysql(connection.dialect):
            last = connection.execute(self._advance["other"], values).scalar()
            return None if last is None else int(last)
        done = connection.execute(self._advance["mysql"], values)
        return int(done.lastrowid) if done.rowcount else None

    def create(self, connection: Connection, values: dict[str, object]) -> int:
        if not is_mysql(connection.dialect):
            return int(connection.execute(self._create[connection.dialect.name], values).scalar_one())
        return int(connection.execute(self._create["mysql"], values).lastrowid)

    def hold(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        name = "mysql" if is_mysql(connection.dialect) else connection.dialect.name
        connection.execute(self._hold[name], one_or_many(rows))

    def move(self, connection: Connection, values: dict[str, object]) -> None:
        connection.execute(self._move, values)


@lru_cache(maxsize=32)
def _statements(counters: str) -> _Statements:
    return _Statements(counter_table(counters))
