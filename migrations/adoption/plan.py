"""What an existing table lacks of the wanted one. Pure: nothing here touches the database.

Policy, the same on every engine: add, never remove; widen, never narrow; no stored value is changed but to fill in what
was empty. Case-insensitive ids and keys become binary where nothing outside the table depends on their collation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    Column,
    Dialect,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import CHAR, DateTime, Text

from migrations.adoption.found import FoundColumn, FoundTable
from migrations.errors import Note
from migrations.origin import Entry, Kind
from staging.storage.dialect import IdString, JsonText, is_mysql

MAKER, LEGACY_MAKER, CREATED_AT = "sMakePerson", "sUserId", "tCreateDate"
BINARY = "utf8mb4_bin"


@dataclass(frozen=True)
class Key:
    name: str
    columns: tuple[str, ...]
    primary: bool


@dataclass(frozen=True)
class Widening:
    """``type`` is the new type as SQL; ``binary``: with a binary collation; ``needed``: not only longer."""

    column: str
    type: str
    binary: bool = False
    needed: bool = False


@dataclass
class Plan:
    """``defaults``: column → SQL. ``loosen``: columns that lose NOT NULL, since our own rows leave them empty."""

    add: list[Column[Any]] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    loosen: list[str] = field(default_factory=list)
    widen: list[Widening] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    not_null: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def entries(self) -> set[Entry]:
        """What a downgrade has to take back. Widened and loosened columns stay: narrowing them could lose data."""
        return {
            Entry(Kind.ADOPTED),
            *(Entry(Kind.COLUMN, column.name) for column in self.add),
            *(Entry(Kind.DEFAULT, name) for name in self.defaults),
            *(Entry(Kind.NOT_NULL, name) for name in self.not_null),
            *(Entry(Kind.KEY, key.name) for key in self.keys),
            *(Entry(Kind.INDEX, str(index.name)) for index in self.indexes),
        }


def required(column: Column[Any]) -> bool:
    """True for the columns every writer gives: a table without them is not a queue."""
    return not column.nullable and column.server_default is None


def make_plan(found: FoundTable, wanted: Table, indexes: Iterable[Index], dialect: Dialect) -> Plan:
    """Compare; ``wanted`` and ``indexes`` are the table as the version file states it."""
    plan = Plan(indexes=[index for index in indexes if index.name not in found.indexes])
    for column in wanted.columns:
        present = found.column(column.name)
        if present is None:
            plan.add.append(column)
        else:
            _complete(plan, found, present, column, dialect)
    known = {column.name.casefold() for column in wanted.columns}
    for present in found.columns.values():
        if present.name.casefold() not in known and not present.nullable and not present.generated:
            _let_be_left_out(plan, present, dialect)
    _keys(plan, found, wanted)
    return plan


def _complete(
    plan: Plan, found: FoundTable, present: FoundColumn, column: Column[Any], dialect: Dialect
) -> None:
    if present.default is None and column.server_default is not None:
        # Our own INSERT leaves the column to its default; and a row without its time would never come up.
        if not present.nullable or column.name == CREATED_AT:
            plan.defaults[present.name] = _default(column, present, dialect)
    elif column.nullable and not present.nullable and column.name != "iStatusCode":
        plan.loosen.append(present.name)
    widening = _widening(found, present, column, dialect)
    if widening is not None:
        plan.widen.append(widening)
    elif _case_insensitive(present, column, dialect):
        plan.notes.append(_keeps_collation(present))
    if column.name == CREATED_AT:
        plan.notes.extend(_local_time(present, dialect))


def _default(column: Column[Any], present: FoundColumn, dialect: Dialect) -> str:
    sql = str(dialect.ddl_compiler(dialect, None).get_column_default_string(column))  # type: ignore[arg-type]
    without_zone = isinstance(present.type, DateTime) and not present.type.timezone
    if dialect.name == "postgresql" and column.name == CREATED_AT and without_zone:
        return f"({sql} AT TIME ZONE 'UTC')"
    return sql


def _let_be_left_out(plan: Plan, present: FoundColumn, dialect: Dialect) -> None:
    """An unknown NOT NULL column without default would refuse every row of ours: give it a neutral default."""
    if present.default is not None:
        return
    if isinstance(present.type, Integer | Numeric):
        plan.defaults[present.name] = "0"
    elif isinstance(present.type, String) and not isinstance(present.type, mysql.ENUM | mysql.SET):
        plain_text = isinstance(present.type, Text) and is_mysql(dialect)
        plan.defaults[present.name] = "('')" if plain_text else "''"
    else:
        name = present.name
        plan.notes.append(
            Note(
                f"列 {name} 为 NOT NULL 且没有默认值：Opstage 自己写入的行会被拒绝。请为其设置默认值或允许 NULL。",
                f"Column {name} is NOT NULL without a default: rows Opstage itself inserts will be refused. "
                "Give it a default or allow NULL.",
            )
        )


def _widening(
    found: FoundTable, present: FoundColumn, column: Column[Any], dialect: Dialect
) -> Widening | None:
    if dialect.name == "sqlite":  # lengths and types are not enforced there
        nocase = _case_insensitive(present, column, dialect)
        return Widening(present.name, "", binary=True) if nocase else None
    if isinstance(column.type, Integer):
        small = isinstance(present.type, mysql.TINYINT) and column.name == "iStatusCode"
        return Widening(present.name, "INTEGER") if small else None
    if not isinstance(present.type, String) or isinstance(present.type, mysql.ENUM | mysql.SET):
        return None
    kind = _text_type(present, column, dialect)
    if not is_mysql(dialect):
        # PostgreSQL pads CHAR: an id would not come back as it was written.
        needed = isinstance(present.type, CHAR) and isinstance(column.type, IdString)
        return Widening(present.name, kind, needed=needed) if kind else None
    binary = _case_insensitive(present, column, dialect)
    if present.name in found.linked or not (kind or binary or present.charset != "utf8mb4"):
        return None
    return Widening(present.name, kind or _same_type(present, dialect), binary)


def _text_type(present: FoundColumn, column: Column[Any], dialect: Dialect) -> str:
    """The wider type as SQL, or "" where the present one is wide enough."""
    length = getattr(present.type, "length", None)
    if isinstance(column.type, Text | JsonText):
        if is_mysql(dialect):
            return "" if isinstance(present.type, mysql.LONGTEXT) else "LONGTEXT"
        return "" if isinstance(present.type, Text) or length is None else "TEXT"
    wanted = int(column.type.length)  # type: ignore[attr-defined]
    padded = isinstance(present.type, CHAR)
    if isinstance(present.type, Text) or length is None or (length >= wanted and not padded):
        return ""
    return f"VARCHAR({max(length, wanted)})"


def _same_type(present: FoundColumn, dialect: Dialect) -> str:
    return str(type(present.type)(length=present.type.length).compile(dialect=dialect))  # type: ignore[attr-defined, call-arg]


def _case_insensitive(present: FoundColumn, column: Column[Any], dialect: Dialect) -> bool:
    if not isinstance(column.type, IdString):
        return False
    if dialect.name == "sqlite":
        return present.collation == "NOCASE"
    return bool(present.collation) and not present.collation.endswith(("_bin", "_cs"))


def _keeps_collation(present: FoundColumn) -> Note:
    return Note(
        f"列 {present.name} 参与外键，保留排序规则 {present.collation}：大小写不同的值仍视为相同。",
        f"Column {present.name} is part of a foreign key and keeps its collation {present.collation}: "
        "values that differ only in case still count as equal.",
    )


def _local_time(present: FoundColumn, dialect: Dialect) -> list[Note]:
    default = (present.default or "").lower()
    zoned = dialect.name == "sqlite" or getattr(present.type, "timezone", False)
    if (
        zoned
        or "utc" in default
        or not any(word in default for word in ("now", "current_timestamp", "clock"))
    ):
        return []
    return [
        Note(
            f"列 {present.name} 的默认值 {present.default} 取写入方会话的时区；时间应为 UTC，请让写入方使用 UTC 时区。",
            f"The default {present.default} of {present.name} is in the writer's session time zone; times are UTC "
            "here, so let the writers' sessions use UTC.",
        )
    ]


def _keys(plan: Plan, found: FoundTable, wanted: Table) -> None:
    for constraint in sorted(wanted.constraints, key=lambda c: str(c.name)):
        if not isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint):
            continue
        columns = tuple(column.name for column in constraint.columns)
        if found.is_unique(columns):
            continue
        primary = isinstance(constraint, PrimaryKeyConstraint)
        if primary and found.primary_key:
            plan.keys.append(Key(f"uq_{found.name}_id", columns, primary=False))
            continue
        plan.keys.append(Key(str(constraint.name), columns, primary))
        if primary:
            plan.not_null += [name for name in columns if (there := found.column(name)) and there.nullable]
