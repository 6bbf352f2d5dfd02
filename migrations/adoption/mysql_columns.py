"""Change one property of a MySQL-family column and keep all others.

``MODIFY COLUMN`` replaces the whole definition: default, comment, check and invisibility are lost unless restated.
So the definition is taken word by word from ``SHOW CREATE TABLE`` and only the wanted part of it is replaced.
"""

from __future__ import annotations

import re

from sqlalchemy import Connection

from migrations.adoption.plan import BINARY, Widening
from migrations.steps import quoted

_COLUMN = re.compile(
    r"^\s*(?P<name>`(?:[^`]|``)+`) (?P<type>\w+(?:\([^)]*\))?(?: unsigned)?(?: zerofill)?)"
    r"(?P<charset> CHARACTER SET \w+)?(?P<collation> COLLATE \w+)?(?P<rest>.*?),?$"
)
_NOT_NULL = re.compile(r"^ NOT NULL\b")


def widened(connection: Connection, table: str, widening: Widening) -> str:
    """``MODIFY COLUMN …`` that gives the column its new type, in utf8mb4 where it is text."""
    match = _definition(connection, table, widening.column)
    charset, collation = match["charset"] or "", match["collation"] or ""
    if widening.type != "INTEGER":
        if widening.binary:
            charset, collation = " CHARACTER SET utf8mb4", f" COLLATE {BINARY}"
        elif "utf8mb4" not in f"{charset}{collation}":
            charset, collation = " CHARACTER SET utf8mb4", ""
    return f"MODIFY COLUMN {match['name']} {widening.type}{charset}{collation}{match['rest']}"


def nullable(connection: Connection, table: str, column: str) -> str:
    """``MODIFY COLUMN …`` without its NOT NULL."""
    match = _definition(connection, table, column)
    rest = _NOT_NULL.sub(" NULL", match["rest"])
    parts = match["name"], f" {match['type']}", match["charset"] or "", match["collation"] or "", rest
    return "MODIFY COLUMN " + "".join(parts)


def _definition(connection: Connection, table: str, column: str) -> re.Match[str]:
    ddl = str(connection.exec_driver_sql(f"SHOW CREATE TABLE {quoted(connection, table)}").one()[1])
    name = quoted(connection, column)
    for line in ddl.splitlines():
        match = _COLUMN.match(line)
        if match and match["name"] == name:
            return match
    raise LookupError(f"{table}.{column} is not in SHOW CREATE TABLE")
