"""Rows of an existing table that stand in the way: duplicates under a key to be added, ids missing, makers too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    String,
    TableClause,
    cast,
    collate,
    column,
    func,
    literal_column,
    select,
    table,
)
from sqlalchemy.sql import quoted_name

from migrations.adoption.found import FoundTable
from migrations.adoption.plan import BINARY, LEGACY_MAKER, MAKER, Key, Plan
from migrations.errors import Note

_SHOWN = 5  # duplicates and rows named in a message; the rest is counted
_MAKER_LENGTH = 64


def check_rows(connection: Connection, found: FoundTable, plan: Plan) -> Iterator[Note]:
    """What is wrong with the rows, one note each. The columns every queue has must be there."""
    columns: list[ColumnClause[Any]] = [
        column(quoted_name(present.name, quote=True)) for present in found.columns.values()
    ]
    rows = table(quoted_name(found.name, quote=True), *columns)
    for key in plan.keys:
        yield from _duplicates(connection, found, rows, plan, key)
    maker = found.column(LEGACY_MAKER)
    if maker is not None and not found.has(MAKER):
        yield from _long_makers(connection, rows, rows.c[maker.name])


def _duplicates(
    connection: Connection, found: FoundTable, rows: TableClause, plan: Plan, key: Key
) -> Iterator[Note]:
    present = [found.column(name) for name in key.columns]
    names = [there.name for there in present if there is not None]
    if len(names) < len(key.columns):
        return  # new columns are empty, and empty ones never collide
    columns = [rows.c[name] for name in names]
    if key.primary:
        yield from _without_id(connection, rows, columns[0])
    groups = [_as_compared(connection, one, plan) for one in columns]
    statement = (
        select(*(func.min(one) for one in columns), func.count())
        .where(*(one.is_not(None) for one in columns))
        .group_by(*groups)
        .having(func.count() > 1)
        .order_by(*groups)
    )
    duplicates = connection.execute(statement).all()
    own_id = found.column("sId")
    id_column = rows.c[own_id.name] if own_id is not None else columns[0]
    for *values, count in duplicates[:_SHOWN]:
        same = [group == value for group, value in zip(groups, values, strict=True)]
        ids = connection.execute(select(id_column).where(*same).order_by(id_column).limit(_SHOWN)).scalars()
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))
        yield _duplicate(names, shown, count, [str(one).rstrip() for one in ids])
    if len(duplicates) > _SHOWN:
        more = len(duplicates) - _SHOWN
        yield Note(f"另有 {more} 组重复。", f"And {more} more groups of duplicates.")


def _duplicate(names: Sequence[str], shown: str, count: int, ids: Sequence[str]) -> Note:
    if len(names) == 1:
        return Note(
            f"{names[0]} 重复：{shown} 出现 {count} 次。请为多余的行改用不同的 {names[0]}，或删除。",
            f"{names[0]} is not unique: {shown} occurs {count} times. Give the surplus rows another {names[0]}, "
            "or delete them.",
        )
    rows = ", ".join(ids) + (", …" if count > len(ids) else "")
    return Note(
        f"幂等键重复：{shown} 有 {count} 行（sId：{rows}）。请只保留一行使用此键，其余改用不同的键，"
        "或置为 NULL（以 sId 为键）。",
        f"Duplicate idempotency key: {shown} has {count} rows (sId: {rows}). Let one of them keep the key; give the "
        "others another one, or NULL (their sId is the key then).",
    )


def _without_id(connection: Connection, rows: TableClause, own_id: ColumnClause[Any]) -> Iterator[Note]:
    count = connection.execute(select(func.count()).select_from(rows).where(own_id.is_(None))).scalar_one()
    if count:
        yield Note(
            f"有 {count} 行的 {own_id.name} 为 NULL。请为其填写编号，或删除。",
            f"{count} rows have no {own_id.name}. Give them ids, or delete them.",
        )


def _as_compared(connection: Connection, one: ColumnClause[Any], plan: Plan) -> ColumnElement[Any]:
    """The column as the key will compare it: by the collation it is about to get."""
    if any(w.column == one.name and w.binary for w in plan.widen):
        if connection.dialect.name == "sqlite":
            return collate(one, "BINARY")
        return collate(func.convert(one.op("USING")(literal_column("utf8mb4"))), BINARY)
    return one


def _long_makers(connection: Connection, rows: TableClause, maker: ColumnClause[Any]) -> Iterator[Note]:
    """Makers are copied from ``sUserId``; one that would not fit is a refusal now instead of half a migration."""
    length = func.length if connection.dialect.name == "sqlite" else func.char_length
    too_long = length(cast(maker, String)) > _MAKER_LENGTH
    count = connection.execute(select(func.count()).select_from(rows).where(too_long)).scalar_one()
    if count:
        yield Note(
            f"有 {count} 行的 {maker.name} 超过 {_MAKER_LENGTH} 个字符，无法作为 {MAKER}。",
            f"{count} rows have a {maker.name} of more than {_MAKER_LENGTH} characters, too long for {MAKER}.",
        )
