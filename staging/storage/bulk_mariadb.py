"""Many rows in one UPDATE on MariaDB, given as one JSON text: PyMySQL makes a statement, and a round trip, of each.

Not on MySQL, whose JSON_TABLE we have no server to try on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, TextClause, and_, null, text
from sqlalchemy.dialects import mysql

from staging.storage.bulk import Rows

_MOST_CHARACTERS = 1_000_000  # of one text, well below a server's max_allowed_packet
_DIALECT = mysql.dialect()


def takes_json_table(connection: Connection, rows: Rows) -> bool:
    """True where ``rows`` are better given to an ``update_given``."""
    return len(rows) > 1 and bool(getattr(connection.dialect, "is_mariadb", False))


def update_given(
    table: Table,
    compared: Sequence[Column[Any]],
    given: Sequence[Column[Any]],
    where: Sequence[ColumnElement[bool]] = (),
    own: Mapping[Column[Any], ColumnElement[Any] | None] | None = None,
) -> TextClause:
    """UPDATE of the rows of ``table`` whose ``compared`` columns (the key among them) are as in a row of
    ``execute_given``, and for which ``where`` holds: ``given`` columns as given there, ``own`` as said here."""
    columns = ", ".join(_described(column, column in compared) for column in (*compared, *given))
    same = [f"{_sql(column)} = given.{column.name}" for column in compared]
    matched = " AND ".join([*same, _sql(and_(*where))] if where else same)
    values = [f"{_sql(column)} = given.{column.name}" for column in given]
    values += [f"{_sql(c)} = {_sql(null() if value is None else value)}" for c, value in (own or {}).items()]
    # STRAIGHT_JOIN: each row is found, and locked, by its key. A small table would be read, and waited for, whole.
    source = f"JSON_TABLE(:given, '$[*]' COLUMNS ({columns})) AS given"
    sql = f"UPDATE {source} STRAIGHT_JOIN {table.name} ON {matched} SET {', '.join(values)}"  # noqa: S608 - no value
    return text(sql)


def execute_given(connection: Connection, statement: TextClause, rows: Rows) -> int:
    """Update by ``rows`` (of text, integers, None); returns how many rows of the table were matched."""
    return sum(connection.execute(statement, {"given": given}).rowcount for given in _texts(rows))


def _texts(rows: Rows) -> Iterator[str]:
    part: list[str] = []
    for row in rows:
        # What is not there is NULL.
        one = json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False)
        if part and sum(map(len, part)) + len(one) > _MOST_CHARACTERS:
            yield f"[{','.join(part)}]"
            part = []
        part.append(one)
    yield f"[{','.join(part)}]"


def _described(column: Column[Any], compared: bool) -> str:
    """Text that is kept comes at any length, so that the table's column refuses what is too long; here it would become
    NULL without a word."""
    kind = column.type
    is_text = not compared and kind.python_type is str
    declared = "LONGTEXT CHARACTER SET utf8mb4" if is_text else kind.compile(dialect=_DIALECT)
    return f"{column.name} {declared} PATH '$.{column.name}'"


def _sql(element: ColumnElement[Any]) -> str:
    return str(element.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True}))
