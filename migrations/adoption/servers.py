"""Carry out a plan on PostgreSQL and the MySQL family: few ALTER statements, each of them all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from sqlalchemy import Column, Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateColumn

from migrations.adoption import mysql_columns
from migrations.adoption.found import FoundTable, read_table
from migrations.adoption.plan import Plan, Widening
from migrations.errors import Note, refuse
from migrations.origin import Entry, Kind
from migrations.steps import drop_index, quoted, run
from staging.storage.dialect import is_mysql


def alter(connection: Connection, found: FoundTable, plan: Plan, add: Sequence[Column[Any]]) -> None:
    """Bring the table to the plan, but for its indexes. ``add`` are the columns to add, each fit for existing rows."""
    _widen(connection, found.name, plan)
    clauses = [
        *(f"ADD COLUMN {CreateColumn(column).compile(dialect=connection.dialect)}" for column in add),
        *(_set_default(connection, name, sql) for name, sql in plan.defaults.items()),
        *(_loosen(connection, found.name, name) for name in plan.loosen),
        *_add_keys(connection, plan),
    ]
    _alter(connection, found.name, clauses)


def release(connection: Connection, table: str, entries: Iterable[Entry]) -> None:
    """Take back what ``entries`` say was added and is still there."""
    entries = sorted(entries, key=lambda entry: (entry.kind, entry.name))
    by_kind = {kind: [entry.name for entry in entries if entry.kind is kind] for kind in Kind}
    for name in by_kind[Kind.INDEX]:
        drop_index(connection, table, name)
    found = read_table(connection, table)
    keys = _drop_keys(connection, found, by_kind[Kind.KEY])
    columns = [name for name in by_kind[Kind.COLUMN] if found.has(name)]
    defaults = [name for name in by_kind[Kind.DEFAULT] if (c := found.column(name)) and c.default is not None]
    _alter(connection, table, keys)  # apart: a NOT NULL can only go once the primary key has
    _alter(
        connection,
        table,
        [
            *(f"DROP COLUMN {quoted(connection, name)}" for name in columns),
            *(_drop_default(connection, found, name) for name in defaults),
        ],
    )
    tightened = [name for name in by_kind[Kind.NOT_NULL] if (c := found.column(name)) and not c.nullable]
    _alter(connection, table, [_loosen(connection, table, name) for name in tightened])


def _alter(connection: Connection, table: str, clauses: Sequence[str]) -> None:
    if clauses:
        run(connection, f"ALTER TABLE {quoted(connection, table)} {', '.join(clauses)}")


def _widen(connection: Connection, table: str, plan: Plan) -> None:
    """All at once; where that fails, one by one, and what cannot be widened stays as it is, with a note."""
    if not plan.widen or _try(connection, table, plan.widen) is None:
        return
    for widening in plan.widen:
        problem = _try(connection, table, [widening])
        if not problem:
            continue
        what_zh = f"列 {widening.column} 无法改为 {widening.type}（{problem}）"
        what_en = f"Column {widening.column} could not become {widening.type} ({problem})"
        if widening.needed:
            raise refuse(f"{what_zh}。请先移除此依赖。", f"{what_en}. Remove what depends on it first.")
        plan.notes.append(
            Note(
                f"{what_zh}，保持原样；更长的值会被拒绝。",
                f"{what_en} and stays as it is; longer values will be refused.",
            )
        )


def _try(connection: Connection, table: str, widenings: Sequence[Widening]) -> str | None:
    mysql = is_mysql(connection.dialect)
    clauses = [
        mysql_columns.widened(connection, table, w)
        if mysql
        else f"ALTER COLUMN {quoted(connection, w.column)} TYPE {w.type}"
        for w in widenings
    ]
    try:
        # DDL ends a savepoint on the MySQL family; there the statement undoes itself.
        with nullcontext() if mysql else connection.begin_nested():
            _alter(connection, table, clauses)
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return str(error.orig).splitlines()[0]
    return None


def _set_default(connection: Connection, name: str, sql: str) -> str:
    return f"ALTER COLUMN {quoted(connection, name)} SET DEFAULT {sql}"


def _drop_default(connection: Connection, found: FoundTable, name: str) -> str:
    column = found.column(name)
    # Without any default a nullable MySQL column would have to be named in every INSERT; it was not before.
    back_to_null = is_mysql(connection.dialect) and column is not None and column.nullable
    return f"ALTER COLUMN {quoted(connection, name)} " + (
        "SET DEFAULT NULL" if back_to_null else "DROP DEFAULT"
    )


def _loosen(connection: Connection, table: str, name: str) -> str:
    if is_mysql(connection.dialect):
        return mysql_columns.nullable(connection, table, name)
    return f"ALTER COLUMN {quoted(connection, name)} DROP NOT NULL"


def _add_keys(connection: Connection, plan: Plan) -> Iterator[str]:
    for key in plan.keys:
        columns = ", ".join(quoted(connection, name) for name in key.columns)
        kind = "PRIMARY KEY" if key.primary else "UNIQUE"
        yield f"ADD CONSTRAINT {quoted(connection, key.name)} {kind} ({columns})"


def _drop_keys(connection: Connection, found: FoundTable, names: Iterable[str]) -> list[str]:
    clauses = []
    for name in names:
        if is_mysql(connection.dialect):
            if name == f"pk_{found.name}" and found.primary_key:  # a primary key has no name of its own there
                clauses.append("DROP PRIMARY KEY")
            elif name in found.indexes:
                clauses.append(f"DROP INDEX {quoted(connection, name)}")
        elif name in found.keys:
            clauses.append(f"DROP CONSTRAINT {quoted(connection, name)}")
    return clauses
