"""What every peer's program has in common: its command line, its orders, and our SQL body on psycopg."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, database, open_redis
from tests.benchmarks.reference.body import STATEMENTS, channel, done_message, once, play
from tests.benchmarks.reference.orders import Order, orders

SQL = STATEMENTS["postgresql"]
_local = threading.local()


def execute(op_id: str, brands: str, payload: str) -> None:
    """One operation in one transaction of this thread's own connection, and its message."""
    if not hasattr(_local, "connection"):
        _local.connection, _local.redis = psycopg.connect(database()), open_redis()
    connection = _local.connection
    with connection.transaction(), connection.cursor() as cursor:
        bill_no = play(cursor, once(SQL, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
    _local.redis.publish(channel(op_id), done_message(op_id, bill_no))


def given(path: str) -> Iterator[Order]:
    """The orders of a backlog, one JSON list a line."""
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            yield Order(*json.loads(line))


def main(
    *,
    fill: Callable[[list[Order]], Any],
    send: Callable[[Order], Any],
    prepare: Callable[[], Any] | None = None,
    work: Callable[[], Any] | None = None,
) -> None:
    """``prepare`` | ``fill FILE`` | ``work`` | ``latency N``: what the arm asks of the program."""
    match sys.argv[1:]:
        case ["prepare"]:
            if prepare:
                prepare()
        case ["fill", path]:
            fill(list(given(path)))
        case ["work"] if work:
            work()
        case ["latency", count]:
            print(json.dumps(waits_ms(send, int(count))))
        case arguments:
            raise SystemExit(f"not understood: {arguments}")


def waits_ms(send: Callable[[Order], Any], count: int) -> list[float]:
    """From the call that hands an operation over to its message at a subscriber, one at a time, milliseconds."""
    pubsub = open_redis().pubsub()
    found = []
    for order in orders(count):
        name = channel(order.id)
        pubsub.subscribe(name)
        while (pubsub.get_message(timeout=5) or {}).get("type") != "subscribe":
            continue
        start = time.perf_counter()
        send(order)
        while not _is_end(pubsub.get_message(timeout=30)):
            if time.perf_counter() - start > 60:
                raise SystemExit(f"no message for {order.id} within a minute")
        found.append((time.perf_counter() - start) * 1000)
        pubsub.unsubscribe(name)
        while (pubsub.get_message(timeout=5) or {}).get("type") != "unsubscribe":
            continue
        time.sleep(0.005)  # idle means idle: the last one's bookkeeping is not the next one's wait
    return found


def _is_end(message: Any) -> bool:
    return (
        bool(message) and message["type"] == "message" and json.loads(message["data"])["status"] == "success"
    )
