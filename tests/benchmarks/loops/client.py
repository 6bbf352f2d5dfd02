"""Hands orders to the loop by hand, one at a time, and waits for each: ``client latency N``."""

from __future__ import annotations

import psycopg

from tests.benchmarks.loops.wire import SUBSIDIARY, WAKE, database, open_redis
from tests.benchmarks.peers.common import main
from tests.benchmarks.reference.orders import Order

_INSERT = "INSERT INTO bench_queue (id, brands, subsidiary, shard, payload) VALUES (%s, %s, %s, %s, %s)"


class Sender:
    """A row, a commit, a wake-up."""

    def __init__(self) -> None:
        self._connection, self._redis = psycopg.connect(database()), open_redis()

    def __call__(self, order: Order) -> None:
        self._connection.execute(_INSERT, (order.id, order.brands, SUBSIDIARY, order.shard, order.payload))
        self._connection.commit()
        self._redis.lpush(WAKE, order.id)

    def all_of(self, orders: list[Order]) -> None:
        for order in orders:
            self(order)


if __name__ == "__main__":
    sender = Sender()
    main(fill=sender.all_of, send=sender)
