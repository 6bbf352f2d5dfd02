"""The shape of a schema as data, so that two can be compared: by reflection, and by the database's own words."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.engine.reflection import Inspector


def tables(engine: Engine) -> set[str]:
    """Names of the tables in the database."""
    return set(inspect(engine).get_table_names())


def shape(engine: Engine, names: list[str]) -> dict[str, Any]:
    """Table → columns in order, keys, checks, indexes (with order and predicate), and the database's own DDL."""
    with engine.connect() as connection:
        inspector = inspect(connection)
        return {name: _table(connection, inspector, name) for name in names}


def _table(connection: Connection, inspector: Inspector, name: str) -> dict[str, Any]:
    primary = inspector.get_pk_constraint(name)
    return {
        "columns": [
            (c["name"], repr(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(name)
        ],
        "primary key": (primary["name"], primary["constrained_columns"]),
        "unique": sorted((str(u["name"]), u["column_names"]) for u in inspector.get_unique_constraints(name)),
        "checks": sorted((str(c["name"]), c["sqltext"]) for c in inspector.get_check_constraints(name)),
        "indexes": sorted(
            (
                str(i["name"]),
                i["column_names"],
                i["unique"],
                repr(i.get("column_sorting")),
                {key: str(value) for key, value in (i.get("dialect_options") or {}).items()},
            )
            for i in inspector.get_indexes(name)
        ),
        "ddl": _ddl(connection, name),
    }


def _ddl(connection: Connection, name: str) -> list[str]:
    """What the database itself says the table is, order of creation aside."""
    if connection.dialect.name == "sqlite":
        query = "SELECT sql FROM sqlite_master WHERE tbl_name = :name AND sql IS NOT NULL"
    elif connection.dialect.name == "postgresql":
        query = (
            "SELECT indexdef FROM pg_indexes WHERE tablename = :name "
            "UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE conrelid = CAST(quote_ident(:name) AS regclass)"
        )
    else:
        quoted = connection.dialect.identifier_preparer.quote_identifier(name)
        ddl = str(connection.exec_driver_sql(f"SHOW CREATE TABLE {quoted}").one()[1])
        return sorted(
            line.strip().rstrip(",") for line in re.sub(r" AUTO_INCREMENT=\d+", "", ddl).splitlines()
        )
    return sorted(str(row[0]) for row in connection.execute(text(query), {"name": name}))
