"""Column types and expressions that mean the same on SQLite, PostgreSQL and the MySQL family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, TypeAlias

from sqlalchemy import DateTime, Dialect, Float, Numeric, SmallInteger, String, Text, func, literal
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter, ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

# Arithmetic in the context's 28 digits would round an amount of up to 38 before it is looked at.
_WIDE = Context(prec=200)
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now'{}) || '000'"


def is_mysql(dialect: Dialect) -> bool:
    """True for MySQL and MariaDB."""
    return dialect.name in ("mysql", "mariadb")


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes with microseconds; naive ones are refused going in and taken for UTC coming out.

    Stored as timestamptz, DATETIME(6), or on SQLite as 26 characters ``YYYY-MM-DD HH:MM:SS.ffffff``, which sort
    by time and compare with ``db_now()``. Values other programs wrote (ISO ``T``/``Z``, no fraction) are read as well.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(26))
        if is_mysql(dialect):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive datetime {value.isoformat()}: say which time zone")
        utc = value.astimezone(UTC)
        if dialect.name == "sqlite":
            return utc.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return utc.replace(tzinfo=None) if is_mysql(dialect) else utc

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if isinstance(value, str):
            # '0000-00-00 …' is how the MySQL family stores "no date" in old tables.
            value = None if value.startswith("0000-") else datetime.fromisoformat(value)
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class ExactDecimal(TypeDecorator[Decimal]):
    """NUMERIC(precision, scale); on SQLite TEXT with exactly ``scale`` decimals, since its NUMERIC is a binary float.

    Takes Decimal and int, never float, and refuses a value it could not give back exactly. On SQLite neither
    ``ORDER BY`` nor ``SUM`` nor ``+`` on such a column is exact: order by ``sortable(column)``, and add up in Python
    under the write lock.
    """

    impl = Numeric
    cache_ok = True

    def __init__(self, precision: int = 18, scale: int = 2) -> None:
        super().__init__(precision, scale)
        self.precision, self.scale = precision, scale
        self._unit = Decimal(1).scaleb(-scale)
        self._limit = Decimal(10) ** (precision - scale)

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(Numeric(self.precision, self.scale, asdecimal=True))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, Decimal | int):
            raise TypeError(f"{value!r}: an exact decimal is a Decimal or an int")
        number = Decimal(value)
        if not number.is_finite() or _WIDE.abs(number) >= self._limit or _WIDE.remainder(number, self._unit):
            raise ValueError(f"{value} does not fit NUMERIC({self.precision}, {self.scale})")
        return f"{number:.{self.scale}f}" if dialect.name == "sqlite" else number

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        if value is None or isinstance(value, Decimal):
            return value
        if isinstance(value, float):  # an adopted float column: its shortest text, cut to the scale we know
            return Decimal(repr(value)).quantize(self._unit, ROUND_HALF_EVEN)
        return Decimal(value)


class IdString(TypeDecorator[str]):
    """Ids, keys and codes of up to ``length`` characters: 'A' and 'a' differ on every engine."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if is_mysql(dialect):
            return dialect.type_descriptor(
                mysql.VARCHAR(self.length, charset="utf8mb4", collation="utf8mb4_bin")
            )
        return dialect.type_descriptor(String(self.length))


class Flag(TypeDecorator[int]):
    """1 or 0 in whatever column an ERP keeps yes and no: integer, boolean, BIT(1). Compare with ``flag_is``."""

    impl = SmallInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # PostgreSQL is not told a type, so that it takes the text '1' for what the column is.
        return dialect.type_descriptor(NullType() if dialect.name == "postgresql" else SmallInteger())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        return str(int(value)) if dialect.name == "postgresql" else int(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        if value is None:
            return None
        return int(any(value)) if isinstance(value, bytes) else int(value)


def flag_is(column: ColumnElement[Any], wanted: bool) -> ColumnElement[bool]:
    """``column`` (of type ``Flag``) is on, or off; empty counts as off."""
    same: ColumnElement[bool] = func.coalesce(column, literal(0, Flag())) == literal(int(wanted), Flag())
    return same


class JsonText(TypeDecorator[str]):
    """Raw JSON text in and out, never parsed by a driver (which would make floats of amounts).

    Our own columns are TEXT / LONGTEXT. The casts make the same statements work on adopted ``text``, ``json`` and
    ``jsonb`` columns of PostgreSQL, and let it refuse text that is not JSON.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if is_mysql(dialect):
            return dialect.type_descriptor(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"))
        return dialect.type_descriptor(Text())

    def bind_expression(self, bindvalue: BindParameter[str]) -> ColumnElement[str]:
        return as_json(bindvalue)

    def column_expression(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return _AsText(column)


class as_json(FunctionElement[str]):  # noqa: N801
    """Text on its way into a ``JsonText`` column."""

    type = Text()
    inherit_cache = True


class _AsText(FunctionElement[str]):
    type = Text()
    inherit_cache = True


class db_now(FunctionElement[datetime]):  # noqa: N801 - reads as the SQL function it is
    """The database's clock, UTC, moving in a transaction, read once per statement. Also fit for ``server_default``."""

    type = UtcDateTime()
    inherit_cache = True


class db_now_plus(FunctionElement[datetime]):  # noqa: N801
    """``db_now()`` plus a number of seconds (float, int, or an SQL expression), which may be negative."""

    type = UtcDateTime()
    inherit_cache = True

    def __init__(self, seconds: float | ColumnElement[Any]) -> None:
        bound = seconds if isinstance(seconds, ColumnElement) else literal(float(seconds), Float())
        super().__init__(bound)


class sortable(FunctionElement[Any]):  # noqa: N801
    """An ``ExactDecimal`` column as something that orders by amount; on SQLite by its nearest float: add the key."""

    type = Numeric()
    inherit_cache = True


Element: TypeAlias = FunctionElement[Any]


def _inner(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return ", ".join(compiler.process(part, **kw) for part in element.clauses)


@compiles(as_json)
@compiles(_AsText)
@compiles(sortable)
def _plain(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return _inner(element, compiler, **kw)


@compiles(as_json, "postgresql")
def _as_json_pg(element: as_json, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CAST({_inner(element, compiler, **kw)} AS JSON)"


@compiles(_AsText, "postgresql")
def _as_text_pg(element: _AsText, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CAST({_inner(element, compiler, **kw)} AS TEXT)"


@compiles(sortable, "sqlite")
def _sortable_sqlite(element: sortable, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CAST({_inner(element, compiler, **kw)} AS REAL)"


@compiles(db_now, "postgresql")
def _now_pg(element: db_now, compiler: SQLCompiler, **kw: Any) -> str:
    # A bare clock_timestamp() is volatile: evaluated per row, and no index condition. A scalar subquery runs once,
    # but may not stand in a column's DEFAULT (DDL is what is compiled with literal binds).
    return "clock_timestamp()" if kw.get("literal_binds") else "(SELECT clock_timestamp())"


@compiles(db_now, "mysql")
@compiles(db_now, "mariadb")
def _now_mysql(element: db_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "(UTC_TIMESTAMP(6))"


@compiles(db_now, "sqlite")
def _now_sqlite(element: Element, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({_SQLITE_NOW.format('')})"


@compiles(db_now_plus, "postgresql")
def _now_plus_pg(element: db_now_plus, compiler: SQLCompiler, **kw: Any) -> str:
    seconds = f"CAST({_inner(element, compiler, **kw)} AS double precision)"
    return f"(SELECT clock_timestamp() + make_interval(secs => {seconds}))"


@compiles(db_now_plus, "mysql")
@compiles(db_now_plus, "mariadb")
def _now_plus_mysql(element: db_now_plus, compiler: SQLCompiler, **kw: Any) -> str:
    return f"DATE_ADD(UTC_TIMESTAMP(6), INTERVAL {_inner(element, compiler, **kw)} SECOND)"


@compiles(db_now_plus, "sqlite")
def _now_plus_sqlite(element: db_now_plus, compiler: SQLCompiler, **kw: Any) -> str:
    seconds = f"printf('%+.3f seconds', {_inner(element, compiler, **kw)})"
    return f"({_SQLITE_NOW.format(', ' + seconds)})"


def one_or_many(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
    """``rows`` (at least one) as parameters of ``execute``: a single one not as a list, for which drivers have a slower
    way (psycopg a pipeline of its own)."""
    return rows if len(rows) > 1 else rows[0]
