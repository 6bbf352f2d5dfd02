"""dramatiq: an actor over Redis, two processes of eight threads, as it comes."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from tests.benchmarks.peers.common import execute, main
from tests.benchmarks.reference.orders import Order

dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_REDIS"]))


@dramatiq.actor(actor_name="place")
def place(op_id: str, brands: str, payload: str) -> None:
    execute(op_id, brands, payload)


def fill(orders: list[Order]) -> None:
    for order in orders:
        place.send(order.id, order.brands, order.payload)


if __name__ == "__main__":
    main(fill=fill, send=lambda order: fill([order]))
