"""The SQL body for the asynchronous drivers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.benchmarks.loops.wire import SUBSIDIARY, USER
from tests.benchmarks.peers.common import SQL
from tests.benchmarks.reference.body import Steps, channel, done_message, once


async def with_psycopg(pool: Any, server: Any, op_id: str, brands: str, payload: str) -> None:
    """One operation on a connection of a psycopg pool, and its message."""
    async with pool.connection() as connection, connection.cursor() as cursor:
        bill_no = await _cursor(cursor, once(SQL, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
    await server.publish(channel(op_id), done_message(op_id, bill_no))


async def _cursor(cursor: Any, steps: Steps) -> Any:
    answer: Any = None
    while True:
        try:
            statement, values, wanted = steps.send(answer)
        except StopIteration as end:
            return end.value
        await cursor.execute(statement, values)
        answer = cursor.rowcount if wanted == "count" else None
        if wanted == "value":
            row = await cursor.fetchone()
            answer = row[0] if row else None


async def with_asyncpg(pool: Any, server: Any, op_id: str, brands: str, payload: str) -> None:
    """One operation on a connection of an asyncpg pool, and its message."""
    async with pool.acquire() as connection, connection.transaction():
        bill_no = await _connection(
            connection, once(SQL, op_id, brands, SUBSIDIARY, USER, json.loads(payload))
        )
    await server.publish(channel(op_id), done_message(op_id, bill_no))


async def _connection(connection: Any, steps: Steps) -> Any:
    answer: Any = None
    while True:
        try:
            statement, values, wanted = steps.send(answer)
        except StopIteration as end:
            return end.value
        if wanted == "value":
            answer = await connection.fetchval(_numbered(statement), *values)
        else:
            tag = await connection.execute(_numbered(statement), *values)
            answer = int(tag.rpartition(" ")[2]) if wanted == "count" else None


@cache
def _numbered(statement: str) -> str:
    first, *rest = statement.split("%s")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
