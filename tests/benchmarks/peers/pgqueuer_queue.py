"""pgqueuer on asyncpg and uvloop, batches of 50, in two processes."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import asyncpg
import redis.asyncio
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from tests.benchmarks.loops.wire import database
from tests.benchmarks.peers.asynchronous import with_asyncpg
from tests.benchmarks.peers.common import main
from tests.benchmarks.reference.orders import Order

BATCH = 50
CONNECTIONS = 4


async def serve() -> None:
    connection = await asyncpg.connect(database())
    server = redis.asyncio.Redis.from_url(os.environ["BENCH_REDIS"])
    queue = PgQueuer(AsyncpgDriver(connection))
    async with asyncpg.create_pool(database(), min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:

        @queue.entrypoint("place")
        async def place(job: Any) -> None:
            await with_asyncpg(pool, server, *json.loads(job.payload))

        await queue.run(batch_size=BATCH)


async def prepare() -> None:
    connection = await asyncpg.connect(database())
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


def _said(order: Order) -> bytes:
    return json.dumps([order.id, order.brands, order.payload]).encode()


async def fill(orders: list[Order]) -> None:
    connection = await asyncpg.connect(database())
    count = len(orders)
    await Queries(AsyncpgDriver(connection)).enqueue(
        ["place"] * count, [_said(o) for o in orders], [0] * count
    )
    await connection.close()


class Sender:
    """Hands over one order at a time on a connection that stays open."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._queries: Any = None

    def __call__(self, order: Order) -> None:
        self._loop.run_until_complete(self._send(order))

    async def _send(self, order: Order) -> None:
        if self._queries is None:
            self._queries = Queries(AsyncpgDriver(await asyncpg.connect(database())))
        await self._queries.enqueue("place", _said(order))


if __name__ == "__main__":
    main(
        prepare=lambda: asyncio.run(prepare()),
        fill=lambda orders: asyncio.run(fill(orders)),
        send=Sender(),
        work=lambda: uvloop.run(serve()),
    )
