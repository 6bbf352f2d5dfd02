"""Many rows in one statement.

PostgreSQL takes them as one JSON text: through psycopg each row of an executemany is a statement of its own, for both
sides. The other drivers make one statement of it (PyMySQL), or need no server for it (sqlite3).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    bindparam,
    column as named,
    func,
    insert,
    select,
)
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.selectable import TableValuedAlias

from staging.storage.dialect import JsonText, as_json, one_or_many

Rows: TypeAlias = Sequence[Mapping[str, Any]]
_GIVEN: BindParameter[str] = bindparam("given", type_=Text())


def takes_json(connection: Connection, rows: Rows) -> bool:
    """True where ``rows`` are better given, ``as_given``, to a statement that reads ``given_rows``."""
    return len(rows) > 1 and connection.dialect.name == "postgresql"


def as_given(rows: Rows) -> dict[str, str]:
    """``rows`` (of text, numbers, None, aware datetimes) as the parameter of such a statement."""
    return {"given": json.dumps(list(rows), ensure_ascii=False, default=datetime.isoformat)}


def given_rows(table: Table, names: Iterable[str]) -> TableValuedAlias:
    """What a statement reads of ``as_given``: values for columns of ``table``, by the columns' names (PostgreSQL)."""
    columns = [table.c[name] for name in names]
    plain = [named(c.name, Text() if isinstance(c.type, JsonText) else c.type) for c in columns]
    rows = func.json_to_recordset(as_json(_GIVEN))
    return rows.table_valued(*plain).render_derived("given", with_types=True)


def kept(given: TableValuedAlias, column: Column[Any]) -> ColumnElement[Any]:
    """The value given for ``column`` as it keeps it."""
    value = given.c[column.name]
    return as_json(value) if isinstance(column.type, JsonText) else value


def select_given(table: Table, names: Sequence[str]) -> Select[Any]:
    """All of ``given_rows`` as ``table`` keeps them."""
    given = given_rows(table, names)
    return select(*(kept(given, table.c[name]) for name in names))


def insert_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Insert ``rows`` (at least one, all with the same columns)."""
    if takes_json(connection, rows):
        connection.execute(insert_given(table, tuple(rows[0])), as_given(rows))
    else:
        connection.execute(_insert(table), one_or_many(rows))


@lru_cache(maxsize=64)
def _insert(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=64)
def insert_given(table: Table, names: tuple[str, ...]) -> Insert:
    """INSERT of ``as_given`` rows with these columns of ``table`` (PostgreSQL)."""
    return insert(table).from_select(list(names), select_given(table, names))
