"""What makes an existing table unfit, found before anything is changed and reported all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Connection, Dialect, Integer, Numeric, String, Table
from sqlalchemy.types import JSON, DateTime, Enum

from migrations.adoption.found import FoundColumn, FoundTable
from migrations.adoption.plan import LEGACY_MAKER, MAKER, Plan, required
from migrations.adoption.row_checks import check_rows
from migrations.errors import MigrationRefused, Note
from staging.storage.dialect import JsonText, UtcDateTime


def check(connection: Connection, found: FoundTable, wanted: Table, plan: Plan) -> None:
    """Raise ``MigrationRefused`` with every reason; return if the plan can be carried out."""
    problems = [*_shape(found, wanted, connection.dialect)]
    if not problems:  # only now can the table be queried by its columns
        problems += check_rows(connection, found, plan)
    if problems:
        problems.append(
            Note(
                f"表 {found.name} 未作任何更改。处理后请重新升级。",
                f"Nothing in {found.name} was changed. Put this right, then upgrade again.",
            )
        )
        raise MigrationRefused(problems)


def _shape(found: FoundTable, wanted: Table, dialect: Dialect) -> Iterator[Note]:
    if found.engine and found.engine.lower() != "innodb":
        yield Note(
            f"表 {found.name} 使用 {found.engine} 引擎，不支持事务。请执行：ALTER TABLE {found.name} ENGINE=InnoDB",
            f"Table {found.name} uses the engine {found.engine}, which has no transactions. "
            f"Run: ALTER TABLE {found.name} ENGINE=InnoDB",
        )
    by_lower_case = {name.casefold(): name for name in found.columns}
    for column in wanted.columns:
        present = found.column(column.name)
        if present is None and required(column):
            if column.name == MAKER and found.has(LEGACY_MAKER):
                continue
            near = by_lower_case.get(column.name.casefold())
            yield Note(
                f"表 {found.name} 缺少必需的列 {column.name}" + (f"（有 {near}，请改名）" if near else ""),
                f"Table {found.name} lacks the column {column.name}" + (f" (rename {near})" if near else ""),
            )
        elif present is not None and dialect.name != "sqlite" and not _fits(present, column):
            yield Note(
                f"列 {present.name} 的类型 {present.type!r} 不适用，需要 {_words(column)[0]}。请先转换该列。",
                f"Column {present.name} has the type {present.type!r}, but {_words(column)[1]} is needed. "
                "Convert the column first.",
            )


def _fits(present: FoundColumn, column: Column[Any]) -> bool:
    """Whether our statements work on a column of that type."""
    is_text = isinstance(present.type, String) and not isinstance(present.type, Enum)
    if isinstance(column.type, JsonText):
        return is_text or isinstance(present.type, JSON)
    if isinstance(column.type, UtcDateTime):
        return isinstance(present.type, DateTime)
    if isinstance(column.type, Integer):
        return isinstance(present.type, Integer) or (
            isinstance(present.type, Numeric)
            and not present.type.scale
            and present.type.precision is not None
        )
    return is_text


def _words(column: Column[Any]) -> tuple[str, str]:
    if isinstance(column.type, JsonText):
        return "文本或 JSON", "text or JSON"
    if isinstance(column.type, UtcDateTime):
        return "日期时间", "a timestamp"
    if isinstance(column.type, Integer):
        return "整数", "an integer"
    return "字符串", "a character string"
