"""``ai_op_origin``: whose a table is and what a migration added to it, so that a downgrade takes back just that.

Written before the change it describes. So a migration killed in between never takes its own addition for somebody
else's, and a downgrade killed in between never takes somebody else's table for its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, Table, delete, insert, select

from migrations.steps import create_table, drop_table, has_table, run
from staging.storage.dialect import IdString


class Kind(StrEnum):
    """What an entry is about."""

    CREATED = "created"  # the table itself is ours
    ADOPTED = "adopted"  # it was there; the other entries say what was added
    COLUMN = "column"
    DEFAULT = "default"  # a database default given to a column that was there
    NOT_NULL = "not_null"  # became NOT NULL by a primary key of ours
    KEY = "key"  # primary key or unique constraint
    INDEX = "index"


_origin = Table(
    "ai_op_origin",
    MetaData(),
    Column("sTable", IdString(64), nullable=False),
    Column("sKind", IdString(20), nullable=False),
    Column("sName", IdString(64), nullable=False),
    PrimaryKeyConstraint("sTable", "sKind", "sName", name="pk_ai_op_origin"),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)


@dataclass(frozen=True)
class Entry:
    kind: Kind
    name: str = ""


def recall(connection: Connection, table: str) -> frozenset[Entry]:
    """What is known about ``table``; empty where nothing is."""
    if not has_table(connection, _origin.name):
        return frozenset()
    rows = connection.execute(select(_origin.c.sKind, _origin.c.sName).where(_origin.c.sTable == table))
    return frozenset(Entry(Kind(row.sKind), row.sName) for row in rows)


def remember(connection: Connection, table: str, entries: Iterable[Entry]) -> frozenset[Entry]:
    """Add what is new among ``entries``; returns all that is known then."""
    create_table(connection, _origin)
    known = recall(connection, table)
    new = sorted(set(entries) - known, key=lambda entry: (entry.kind, entry.name))
    if new:
        rows = [{"sTable": table, "sKind": entry.kind.value, "sName": entry.name} for entry in new]
        run(connection, insert(_origin).values(rows))
    return known | frozenset(new)


def forget(connection: Connection, table: str) -> None:
    """Drop what is known about ``table``, and the whole record once it is empty."""
    if not has_table(connection, _origin.name):
        return
    if recall(connection, table):
        run(connection, delete(_origin).where(_origin.c.sTable == table))
    if connection.execute(select(_origin.c.sTable).limit(1)).first() is None:
        drop_table(connection, _origin.name)
