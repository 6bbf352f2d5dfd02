"""What an existing table looks like, read from the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.types import TypeEngine

from migrations.adoption import sqlite_text
from migrations.steps import quoted
from staging.storage.dialect import is_mysql


@dataclass(frozen=True)
class FoundColumn:
    """``default`` is SQL text, None where there is none (or NULL). ``generated``: the database fills it in itself."""

    name: str
    type: TypeEngine[Any]
    nullable: bool
    default: str | None
    generated: bool
    charset: str = ""
    collation: str = ""


@dataclass(frozen=True)
class FoundTable:
    """``uniques``: column sets of unique keys that are neither partial nor on prefixes; ``linked``: in foreign keys."""

    name: str
    columns: Mapping[str, FoundColumn]
    primary_key: tuple[str, ...]
    uniques: frozenset[frozenset[str]]
    keys: frozenset[str]
    indexes: frozenset[str]
    linked: frozenset[str]
    engine: str
    collation: str
    case_sensitive_names: bool

    def column(self, name: str) -> FoundColumn | None:
        """The column of that name as this database compares names, or None."""
        return self.columns.get(self._key(name))

    def has(self, name: str) -> bool:
        return self.column(name) is not None

    def _key(self, name: str) -> str:
        return name if self.case_sensitive_names else name.casefold()

    def is_unique(self, columns: tuple[str, ...]) -> bool:
        """True where the primary key or a unique key over exactly these columns is there."""
        wanted = frozenset(self._key(name) for name in columns)
        return wanted in self.uniques or wanted == frozenset(self._key(name) for name in self.primary_key)


def read_table(connection: Connection, name: str) -> FoundTable:
    """Read ``name``, which must exist."""
    inspector = inspect(connection)
    sensitive = connection.dialect.name == "postgresql"
    texts = _texts(connection, name)

    def key(column: str) -> str:
        return column if sensitive else column.casefold()

    engine, collation = _mysql_table(connection, name) if is_mysql(connection.dialect) else ("", "")
    columns = {key(c["name"]): _column(c, texts) for c in inspector.get_columns(name)}
    primary = inspector.get_pk_constraint(name)
    unique_constraints = inspector.get_unique_constraints(name)
    indexes = inspector.get_indexes(name)
    uniques = [frozenset(key(c) for c in u["column_names"]) for u in unique_constraints]
    uniques += [frozenset(key(str(c)) for c in i["column_names"]) for i in indexes if _is_plain_unique(i)]
    return FoundTable(
        name=name,
        columns=columns,
        primary_key=tuple(primary["constrained_columns"]),
        uniques=frozenset(uniques),
        keys=frozenset(str(c["name"]) for c in [primary, *unique_constraints]),
        indexes=frozenset(str(i["name"]) for i in indexes),
        linked=frozenset(_linked(connection, inspector, name)),
        engine=engine,
        collation=collation,
        case_sensitive_names=sensitive,
    )


def _column(reflected: Mapping[str, Any], texts: Mapping[str, tuple[str, str]]) -> FoundColumn:
    default = reflected.get("default")
    generated = bool(reflected.get("computed") or reflected.get("identity"))
    generated = generated or reflected.get("autoincrement") is True
    charset, collation = texts.get(reflected["name"], ("", ""))
    return FoundColumn(
        name=reflected["name"],
        type=reflected["type"],
        nullable=bool(reflected["nullable"]),
        default=None if default is None or str(default).upper() == "NULL" else str(default),
        generated=generated,
        charset=charset,
        collation=collation,
    )


def _is_plain_unique(index: ReflectedIndex) -> bool:
    """Unique over whole columns (not expressions, not prefixes) of all rows."""
    options = index.get("dialect_options") or {}
    # a predicate is an SQL clause, which has no truth value; prefix lengths are a dict
    partial = any(
        name.endswith(("_where", "_length")) and not _is_nothing(value) for name, value in options.items()
    )
    return bool(index["unique"]) and None not in index["column_names"] and not partial


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, dict) and not value)


def _linked(connection: Connection, inspector: Inspector, name: str) -> list[str]:
    """Columns in foreign keys, from here or to here. Only asked where it decides something: the MySQL family."""
    if not is_mysql(connection.dialect):
        return []
    own = [column for key in inspector.get_foreign_keys(name) for column in key["constrained_columns"]]
    to_here = connection.execute(
        text(
            "SELECT REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
            "WHERE REFERENCED_TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = :name"
        ),
        {"name": name},
    )
    return own + [str(row[0]) for row in to_here]


def _texts(connection: Connection, name: str) -> dict[str, tuple[str, str]]:
    """Character set and collation of columns, where an adoption may have to change them."""
    if is_mysql(connection.dialect):
        return _mysql_texts(connection, name)
    return _sqlite_texts(connection, name) if connection.dialect.name == "sqlite" else {}


def _mysql_texts(connection: Connection, name: str) -> dict[str, tuple[str, str]]:
    """Character set and collation of each text column."""
    rows = connection.execute(
        text(
            "SELECT COLUMN_NAME, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = :name AND CHARACTER_SET_NAME IS NOT NULL"
        ),
        {"name": name},
    )
    return {str(row[0]): (str(row[1]), str(row[2])) for row in rows}


def _sqlite_texts(connection: Connection, name: str) -> dict[str, tuple[str, str]]:
    """Collation of each column that says one."""
    ddl = sqlite_text.read(connection, name)
    columns = [
        str(row.name) for row in connection.exec_driver_sql(f"PRAGMA table_info({quoted(connection, name)})")
    ]
    return {column: ("", collation) for column in columns if (collation := ddl.collation(column))}


def _mysql_table(connection: Connection, name: str) -> tuple[str, str]:
    """Storage engine and default collation of the table."""
    statement = text(
        "SELECT ENGINE, TABLE_COLLATION FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = :name"
    )
    engine, collation = connection.execute(statement, {"name": name}).one()
    return str(engine), str(collation)
