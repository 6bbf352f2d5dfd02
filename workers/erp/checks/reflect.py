"""Tables as they are in a live database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.types import TypeEngine


@dataclass(frozen=True, slots=True)
class LiveColumn:
    """``has_default``: the database fills it by itself (default, identity, auto-increment, generated).

    ``numbered``: by all but a default, so nobody else ever should.
    """

    name: str
    type: TypeEngine[Any]
    nullable: bool
    has_default: bool
    comment: str
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One column that points at one column of another table."""

    column: str
    table: str
    target: str


@dataclass(frozen=True, slots=True)
class LiveTable:
    """``unique``: column sets no two rows share, the primary key among them. ``engine``: MySQL's, else empty."""

    name: str
    columns: Mapping[str, LiveColumn]
    primary_key: tuple[str, ...]
    unique: tuple[frozenset[str], ...]
    foreign_keys: tuple[ForeignKey, ...]
    comment: str
    engine: str

    def is_unique(self, columns: set[str], including: str = "") -> bool:
        """True if some unique set lies within ``columns`` (and has ``including``)."""
        return any(s <= columns and (not including or including in s) for s in self.unique)


class Database:
    """Reads each table once."""

    def __init__(self, connection: Connection) -> None:
        self.dialect = connection.dialect.name
        self._inspector: Inspector = inspect(connection)
        self.names = {*self._inspector.get_table_names(), *self._inspector.get_view_names()}
        self._tables: dict[str, LiveTable] = {}

    def table(self, name: str) -> LiveTable | None:
        """The table (or view) of that exact name, None if there is none."""
        if name not in self.names:
            return None
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def _read(self, name: str) -> LiveTable:
        look = self._inspector
        key = tuple(look.get_pk_constraint(name)["constrained_columns"])
        unique = [frozenset(u["column_names"]) for u in look.get_unique_constraints(name)]
        unique += [
            frozenset(c for c in index["column_names"] if c)
            for index in look.get_indexes(name)
            if index["unique"] and None not in index["column_names"]
        ]
        foreign = [
            ForeignKey(f["constrained_columns"][0], f["referred_table"], f["referred_columns"][0])
            for f in look.get_foreign_keys(name)
            if len(f["constrained_columns"]) == 1 and f["referred_columns"]
        ]
        columns = {c["name"]: self._column(c, key) for c in look.get_columns(name)}
        options = look.get_table_options(name) if self.dialect in ("mysql", "mariadb") else {}
        return LiveTable(
            name=name,
            columns=columns,
            primary_key=key,
            unique=tuple(u for u in (*unique, frozenset(key)) if u),
            foreign_keys=tuple(foreign),
            comment=self._comment(name),
            engine=str(options.get("mysql_engine") or options.get("mariadb_engine") or ""),
        )

    def _comment(self, name: str) -> str:
        if self.dialect == "sqlite" or name not in self._inspector.get_table_names():
            return ""
        return self._inspector.get_table_comment(name)["text"] or ""

    @staticmethod
    def _column(column: Any, key: tuple[str, ...]) -> LiveColumn:
        # True only where the database really numbers; "auto" is what SQLAlchemy says of any integer key.
        numbered = column.get("autoincrement") is True or column.get("identity") or column.get("computed")
        filled = column.get("default") is not None
        return LiveColumn(
            name=column["name"],
            type=column["type"],
            nullable=bool(column["nullable"]) and column["name"] not in key,
            has_default=bool(filled or numbered),
            comment=column.get("comment") or "",
            numbered=bool(numbered),
        )
