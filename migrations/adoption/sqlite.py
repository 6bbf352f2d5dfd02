"""Carry out a plan on SQLite by making the table anew in the same transaction, from its own edited text.

``ALTER TABLE ADD COLUMN`` takes neither a default that is not constant (a time) nor a key, and a default of a column
that is there cannot be changed at all. Foreign keys must be off: dropping a table would otherwise delete the rows
that refer to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, text
from sqlalchemy.schema import CreateColumn

from migrations.adoption.found import FoundTable
from migrations.adoption.plan import Plan
from migrations.adoption.sqlite_text import CreateTable, read
from migrations.origin import Entry, Kind
from migrations.steps import quoted, run

_KEPT = '"temp"."ai_op_kept"'
_STRICT_TYPES = (
    (re.compile(r"\b(VARCHAR|CHAR)\(\d+\)|\bDATETIME\b"), "TEXT"),
    (re.compile(r"\b(SMALLINT|BIGINT)\b"), "INTEGER"),
)


def alter(connection: Connection, found: FoundTable, plan: Plan, add: Sequence[Column[Any]]) -> None:
    """Bring the table to the plan, but for its indexes. ``add`` are the columns to add, each fit for existing rows."""
    if not (add or plan.defaults or plan.loosen or plan.widen or plan.keys):
        return
    ddl = read(connection, found.name)
    ddl = ddl.with_columns([_definition(connection, column, ddl.is_strict) for column in add])
    for name, sql in plan.defaults.items():
        ddl = ddl.with_default(name, sql)
    for widening in plan.widen:
        ddl = ddl.with_binary(widening.column)
    for name in plan.loosen:
        ddl = ddl.with_null(name)
    keys = []
    for key in plan.keys:
        columns = ", ".join(quoted(connection, name) for name in key.columns)
        kind = "PRIMARY KEY" if key.primary else "UNIQUE"
        keys.append(f"CONSTRAINT {quoted(connection, key.name)} {kind} ({columns})")
    _make_anew(connection, found.name, ddl.with_constraints(keys))


def release(connection: Connection, table: str, entries: Iterable[Entry]) -> None:
    """Take back what ``entries`` say was added and is still there."""
    by_kind: dict[Kind, set[str]] = {kind: set() for kind in Kind}
    for entry in entries:
        by_kind[entry.kind].add(entry.name)
    ddl = read(connection, table).without(by_kind[Kind.COLUMN], by_kind[Kind.KEY])
    for name in sorted(by_kind[Kind.DEFAULT]):
        ddl = ddl.without_default(name)
    _make_anew(connection, table, ddl, without=by_kind[Kind.COLUMN], without_indexes=by_kind[Kind.INDEX])


def _make_anew(
    connection: Connection,
    table: str,
    ddl: CreateTable,
    without: Iterable[str] = (),
    without_indexes: Iterable[str] = (),
) -> None:
    """Rows, indexes and triggers are kept, but for the columns and indexes named."""
    if connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one():
        raise RuntimeError("foreign keys must be off while a SQLite table is made anew")
    name = quoted(connection, table)
    gone = {column.casefold() for column in without}
    # hidden columns are generated: nobody may write them
    columns = [
        quoted(connection, row.name)
        for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({name})")
        if row.hidden == 0 and row.name.casefold() not in gone
    ]
    dependants = connection.execute(
        text(
            "SELECT name, sql FROM sqlite_master "
            "WHERE lower(tbl_name) = lower(:table) AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid"
        ),
        {"table": table},
    ).all()
    counter = _autoincrement(connection, table)
    listed = ", ".join(columns)
    # identifiers come from the database's own catalogue and are quoted
    run(connection, f"CREATE TABLE {_KEPT} AS SELECT {listed} FROM {name}")  # noqa: S608
    run(connection, f"DROP TABLE {name}")
    run(connection, str(ddl))
    run(connection, f"INSERT INTO {name} ({listed}) SELECT {listed} FROM {_KEPT}")  # noqa: S608
    run(connection, f"DROP TABLE {_KEPT}")
    if counter is not None:
        run(
            connection, text("UPDATE sqlite_sequence SET seq = :seq WHERE name = :name").bindparams(**counter)
        )
    for dependant in dependants:
        if dependant.name not in set(without_indexes):
            run(connection, dependant.sql)


def _autoincrement(connection: Connection, table: str) -> dict[str, Any] | None:
    """The counter of an AUTOINCREMENT table, which goes with the table: used ids would come back."""
    if (
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").first()
        is None
    ):
        return None
    query = text("SELECT name, seq FROM sqlite_sequence WHERE lower(name) = lower(:table)")
    row = connection.execute(query, {"table": table}).first()
    return None if row is None else {"name": row.name, "seq": row.seq}


def _definition(connection: Connection, column: Column[Any], strict: bool) -> str:
    sql = str(CreateColumn(column).compile(dialect=connection.dialect))
    if strict:  # a STRICT table knows five types
        for pattern, plain in _STRICT_TYPES:
            sql = pattern.sub(plain, sql, count=1)
    return sql
