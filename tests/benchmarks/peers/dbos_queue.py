"""DBOS: a workflow of one transaction and one step, on a queue, eight threads in each of two processes.

READ COMMITTED as everybody else here (DBOS's default is SERIALIZABLE), and a poll of 0.1 s (its default is 1 s).
"""

from __future__ import annotations

import json
import os
import threading
from functools import lru_cache
from typing import Any

from dbos import DBOS, DBOSClient, SQLAlchemyDatasource

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, database, open_redis
from tests.benchmarks.peers.common import SQL, main
from tests.benchmarks.reference.body import channel, done_message, once, play
from tests.benchmarks.reference.orders import Order

URL = database().replace("postgresql://", "postgresql+psycopg://")
QUEUE, VERSION, THREADS, POLL_S = "orders", "1", 8, 0.1
source = SQLAlchemyDatasource.create(URL, engine_kwargs={"pool_size": THREADS})
server = lru_cache(maxsize=1)(open_redis)


@source.transaction(isolation_level="READ COMMITTED")
def write(op_id: str, brands: str, payload: str) -> str:
    cursor: Any = source.sql_session().connection().connection.cursor()
    bill_no: str = play(cursor, once(SQL, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
    return bill_no


@DBOS.step()
def tell(op_id: str, bill_no: str) -> None:
    server().publish(channel(op_id), done_message(op_id, bill_no))


@DBOS.workflow(name="place")
def place(op_id: str, brands: str, payload: str) -> None:
    tell(op_id, write(op_id, brands, payload))


def launch() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "application_version": VERSION,
            "executor_id": os.environ.get("BENCH_WORKER", "0"),
            "max_executor_threads": THREADS,
            "log_level": "WARNING",
        }
    )
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=200, polling_interval_sec=POLL_S)


def prepare() -> None:
    launch()
    DBOS.destroy()


def serve() -> None:
    launch()
    threading.Event().wait()


@lru_cache(maxsize=1)
def client() -> Any:
    return DBOSClient(system_database_url=URL)


def send(order: Order) -> None:
    options = {"queue_name": QUEUE, "workflow_name": "place", "workflow_id": order.id, "app_version": VERSION}
    client().enqueue(options, order.id, order.brands, order.payload)


def fill(orders: list[Order]) -> None:
    for order in orders:
        send(order)


if __name__ == "__main__":
    main(prepare=prepare, fill=fill, send=send, work=serve)
