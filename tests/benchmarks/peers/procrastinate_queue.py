"""procrastinate: an asynchronous task, four at a time in each of two processes."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import procrastinate
import psycopg_pool
import redis.asyncio

from tests.benchmarks.loops.wire import database
from tests.benchmarks.peers.asynchronous import with_psycopg
from tests.benchmarks.peers.common import main
from tests.benchmarks.reference.orders import Order

CONCURRENCY = 4
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=database()))
_own: dict[str, Any] = {}


@app.task(name="place", queue="orders")
async def place(op_id: str, brands: str, payload: str) -> None:
    await with_psycopg(_own["pool"], _own["redis"], op_id, brands, payload)


def prepare() -> None:
    with app.open():
        app.schema_manager.apply_schema()


def fill(orders: list[Order]) -> None:
    with app.open():
        place.batch_defer(*({"op_id": o.id, "brands": o.brands, "payload": o.payload} for o in orders))


def send(order: Order) -> None:
    place.defer(op_id=order.id, brands=order.brands, payload=order.payload)


async def serve() -> None:
    async with app.open_async(), psycopg_pool.AsyncConnectionPool(database(), min_size=CONCURRENCY) as pool:
        _own.update(pool=pool, redis=redis.asyncio.Redis.from_url(os.environ["BENCH_REDIS"]))
        await app.run_worker_async(queues=["orders"], concurrency=CONCURRENCY)


if __name__ == "__main__":
    if "latency" in sys.argv:
        app.open()
    main(prepare=prepare, fill=fill, send=send, work=lambda: asyncio.run(serve()))
