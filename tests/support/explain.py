"""What the database's planner makes of a statement."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Executable, text


def plan_of(connection: Connection, statement: Executable, **parameters: Any) -> str:
    """The plan as one text. PostgreSQL may not scan the whole table, as it would in the small ones of tests."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        connection.execute(text("SET LOCAL enable_bitmapscan = off"))
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    compiled = statement.compile(connection, compile_kwargs={"render_postcompile": True})  # type: ignore[attr-defined]
    values = {**compiled.params, **parameters}
    bound = tuple(values[n] for n in compiled.positiontup) if compiled.positiontup else values
    return str(list(connection.exec_driver_sql(f"{explain} {compiled}", bound)))
