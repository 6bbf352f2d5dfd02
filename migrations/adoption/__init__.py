"""Take over a table that is there already, and give it back.

Adopting adds what the wanted table has and the existing one lacks: columns (with defaults), keys, indexes. All rows
and all columns of others stay. Releasing removes exactly what adopting added; columns that were widened, made binary
or nullable stay so. What was added is kept in ``ai_op_origin``, written first: see there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Index,
    MetaData,
    String,
    Table,
    Text,
    and_,
    cast,
    inspect,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import mysql

from migrations import origin
from migrations.adoption import servers, sqlite
from migrations.adoption.checks import check
from migrations.adoption.found import FoundTable, read_table
from migrations.adoption.plan import CREATED_AT, LEGACY_MAKER, MAKER, make_plan, required
from migrations.errors import Note, refuse
from migrations.origin import Entry, Kind
from migrations.steps import create_indexes, create_table, drop_table, has_table, quoted, run
from staging.storage.dialect import db_now


def create_or_adopt(connection: Connection, wanted: Table, indexes: Sequence[Index]) -> list[Note]:
    """Create ``wanted``, or adopt what has its name. Returns what the operator should know.

    Raises ``MigrationRefused`` where the existing table is not fit; nothing was changed then.
    """
    if not has_table(connection, wanted.name):
        if wanted.name in inspect(connection).get_view_names():
            raise refuse(
                f"{wanted.name} 是视图，无法接管。请将其改名。",
                f"{wanted.name} is a view and cannot be adopted. Rename it.",
            )
        ours = Entry(Kind.CREATED)
        if origin.recall(connection, wanted.name) - {
            ours
        }:  # of an adopted table that was dropped by hand since
            origin.forget(connection, wanted.name)
        origin.remember(connection, wanted.name, [ours])
        create_table(connection, wanted, indexes)
        return []
    if Entry(Kind.CREATED) in origin.recall(connection, wanted.name):
        create_table(connection, wanted, indexes)
        return []
    return _adopt(connection, wanted, indexes)


def drop_or_release(connection: Connection, table: str) -> None:
    """Drop ``table`` where we made it; where we adopted it, take back what was added. Rows of others stay."""
    entries = origin.recall(connection, table)
    if Entry(Kind.CREATED) in entries:
        drop_table(connection, table)
    elif entries and has_table(connection, table):
        release = sqlite.release if connection.dialect.name == "sqlite" else servers.release
        release(connection, table, entries)
    origin.forget(connection, table)


def _adopt(connection: Connection, wanted: Table, indexes: Sequence[Index]) -> list[Note]:
    if connection.dialect.name == "postgresql":  # so that no row slips in between the checks and the keys
        connection.exec_driver_sql(f"LOCK TABLE {quoted(connection, wanted.name)} IN ACCESS EXCLUSIVE MODE")
    found = read_table(connection, wanted.name)
    plan = make_plan(found, wanted, indexes, connection.dialect)
    check(connection, found, wanted, plan)
    known = origin.remember(connection, wanted.name, plan.entries())
    alter = sqlite.alter if connection.dialect.name == "sqlite" else servers.alter
    alter(connection, found, plan, [_addable(column, found) for column in plan.add])
    _fill(connection, found, wanted, new_maker=Entry(Kind.COLUMN, MAKER) in known)
    create_indexes(connection, wanted, plan.indexes)
    return plan.notes


def _addable(column: Column[Any], found: FoundTable) -> Column[Any]:
    """The column as existing rows and writers who do not know it can live with; in utf8mb4 whatever the table is in."""
    type_: Any = column.type
    if found.collation and not found.collation.startswith("utf8mb4"):
        if isinstance(type_, Text):
            type_ = mysql.LONGTEXT(charset="utf8mb4")
        elif isinstance(type_, String):
            type_ = mysql.VARCHAR(type_.length, charset="utf8mb4")
    default = "" if required(column) else getattr(column.server_default, "arg", None)
    copy: Column[Any] = Column(column.name, type_, nullable=column.nullable, server_default=default)
    Table(found.name, MetaData(), copy)  # a column is only complete in a table
    return copy


def _fill(connection: Connection, found: FoundTable, wanted: Table, *, new_maker: bool) -> None:
    """Fill what is empty and would keep a waiting row from being run; never change a value."""
    c = wanted.c
    user = found.column(LEGACY_MAKER)
    if new_maker and user is not None:
        source: ColumnElement[Any] = literal_column(quoted(connection, user.name))
        _update(connection, wanted, c[MAKER], cast(source, String), and_(c[MAKER] == "", source.is_not(None)))
    # a row without its time is never due: the claim goes by age
    _update(connection, wanted, c[CREATED_AT], db_now(), and_(c[CREATED_AT].is_(None), c.iStatusCode == 100))


def _update(
    connection: Connection,
    table: Table,
    column: Column[Any],
    value: ColumnElement[Any],
    where: ColumnElement[bool],
) -> None:
    if connection.execute(select(literal(1)).select_from(table).where(where).limit(1)).first() is not None:
        run(connection, update(table).where(where).values({column: value}))
