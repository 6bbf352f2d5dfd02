"""A latch by name, held until the caller's transaction ends: whoever would meet in the middle waits at the door.

Only a courtesy against deadlocks, never what correctness rests on. PostgreSQL looks for a deadlock after a whole second
and has locks without a row; on SQLite the one write lock is latch enough, and InnoDB finds a deadlock at once.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, func, select

_HOLD = select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("name"), 0)))


def hold_latch(connection: Connection, name: str) -> None:
    """Wait for the latch, at most the connection's lock timeout, whose error comes out as the database raised it."""
    if connection.dialect.name == "postgresql":
        connection.execute(_HOLD, {"name": name})
