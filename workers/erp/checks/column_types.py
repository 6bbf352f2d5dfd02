"""Which column can hold which field."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.mysql import BIT
from sqlalchemy.types import TypeEngine

from staging.contracts.form import FieldType, FormField
from workers.erp.checks.problem import Problem
from workers.erp.checks.reflect import LiveColumn


class Kind(Enum):
    """What a column's type amounts to, whatever the dialect calls it."""

    TEXT = "text"
    INTEGER = "integer"
    EXACT = "exact decimal"
    FLOAT = "binary float"
    BOOLEAN = "boolean"
    BITS = "bits"
    DATE = "date"
    DATETIME = "datetime"
    OTHER = "other"


# Order matters: SQLAlchemy's Float is a Numeric, a MySQL TINYINT(1) an Integer.
_KINDS: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
    (BIT, Kind.BITS),
    (types.Boolean, Kind.BOOLEAN),
    (types.Float, Kind.FLOAT),
    (types.Integer, Kind.INTEGER),
    (types.Numeric, Kind.EXACT),
    (types.DateTime, Kind.DATETIME),
    (types.Date, Kind.DATE),
    (types.String, Kind.TEXT),
)
_FLAGS = {Kind.INTEGER, Kind.BOOLEAN, Kind.BITS}
_FITTING: dict[FieldType, set[Kind]] = {
    FieldType.STRING: {Kind.TEXT},
    FieldType.TEXT: {Kind.TEXT},
    FieldType.REFERENCE: {Kind.TEXT},
    FieldType.INTEGER: {Kind.INTEGER, Kind.EXACT},
    FieldType.DECIMAL: {Kind.EXACT},
    FieldType.BOOLEAN: _FLAGS,
    FieldType.DATE: {Kind.DATE},
    FieldType.DATETIME: {Kind.DATETIME},
    FieldType.CHOICE: {Kind.TEXT},
}


def kind_of(column: LiveColumn) -> Kind:
    """The kind of a reflected column."""
    return next((kind for sql, kind in _KINDS if isinstance(column.type, sql)), Kind.OTHER)


def as_key(path: str, name: str, column: LiveColumn) -> Iterator[Problem]:
    """Keys, parents and tenant columns are text."""
    if kind_of(column) is not Kind.TEXT:
        yield Problem(
            path, f"{name} 不是文本列（{column.type}）", f"{name} is no text column ({column.type})"
        )


def as_flag(path: str, name: str, column: LiveColumn) -> Iterator[Problem]:
    """State columns hold yes or no."""
    if kind_of(column) not in _FLAGS:
        zh, en = f"{name} 不是是/否列（{column.type}）", f"{name} is no yes/no column ({column.type})"
        yield Problem(path, zh, en)


def field_problems(path: str, field: FormField, column: LiveColumn, dialect: str) -> Iterator[Problem]:
    """Type, length and scale of ``column`` against ``field``."""
    kind, fitting = kind_of(column), _fitting(field, dialect)
    if kind not in fitting:
        if kind is Kind.FLOAT and field.type is FieldType.DECIMAL:
            zh = (
                f"金额列 {column.name} 是二进制浮点（{column.type}），会丢失精度，请改为 DECIMAL 或去掉该字段"
            )
            what = f"column {column.name} is a binary float ({column.type})"
            en = f"{what}: amounts get lost, use DECIMAL or leave the field out"
        else:
            zh = f"列 {column.name} 的类型 {column.type} 不适合 {field.type} 字段"
            en = f"column {column.name} of type {column.type} does not fit a field of type {field.type}"
        yield Problem(f"{path}.type", zh, en)
        return
    if kind is Kind.TEXT and field.type in (FieldType.STRING, FieldType.TEXT, FieldType.CHOICE):
        yield from _length(path, field, column)
    if kind is Kind.EXACT and field.type is FieldType.DECIMAL:
        yield from _scale(path, field, column)


def _fitting(field: FormField, dialect: str) -> set[Kind]:
    if field.type is FieldType.CHOICE and all(isinstance(c.value, int) for c in field.choices):
        return {Kind.INTEGER}
    if dialect == "sqlite" and field.type is FieldType.DECIMAL:
        return {Kind.TEXT}  # SQLite's NUMERIC is a binary float
    if dialect == "sqlite" and field.type is FieldType.DATETIME:
        return {Kind.TEXT, Kind.DATETIME}
    return _FITTING[field.type]


def _length(path: str, field: FormField, column: LiveColumn) -> Iterator[Problem]:
    room = getattr(column.type, "length", None)
    if not isinstance(room, int):
        return
    longest = field.length or max((len(str(c.value)) for c in field.choices), default=0)
    if longest > room:
        zh, en = (
            f"列只能容纳 {room} 个字符，字段允许 {longest}",
            f"the column holds {room} characters, the field allows {longest}",
        )
        yield Problem(f"{path}.length", zh, en)
    elif not field.choices and field.length is None and field.accepts_input:
        zh, en = (
            f"未写 length，列只能容纳 {room} 个字符",
            f"no length is given, the column holds {room} characters",
        )
        yield Problem(f"{path}.length", zh, en, "warning")


def _scale(path: str, field: FormField, column: LiveColumn) -> Iterator[Problem]:
    precision, scale = getattr(column.type, "precision", None), getattr(column.type, "scale", None)
    if precision is None:
        return
    scale = scale or 0
    decimals = field.decimals or 0
    if scale < decimals:
        zh, en = (
            f"列只有 {scale} 位小数，字段为 {decimals}",
            f"the column has {scale} decimals, the field {decimals}",
        )
        yield Problem(f"{path}.decimals", zh, en)
    elif scale > decimals:
        zh = f"列有 {scale} 位小数，字段只显示 {decimals} 位"
        en = f"the column has {scale} decimals, the field shows only {decimals}"
        yield Problem(f"{path}.decimals", zh, en, "warning")
    room, asked = precision - scale, field.precision - decimals
    if room < asked:
        zh = f"列的整数部分只有 {room} 位，字段允许 {asked} 位"
        en = f"the column holds {room} digits before the point, the field allows {asked}"
        yield Problem(f"{path}.precision", zh, en)
