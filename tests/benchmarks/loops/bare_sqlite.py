"""By hand, SQLite: claim 50, one transaction and one commit for each operation, one PUBLISH after it."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, WAKE, database, open_redis
from tests.benchmarks.reference.body import STATEMENTS, channel, done_message, play, whole

CLAIM = (
    "UPDATE bench_queue SET status = 'processing' WHERE seq IN"
    " (SELECT seq FROM bench_queue WHERE status = 'pending' ORDER BY seq LIMIT 50) RETURNING id, brands, payload"
)
FINISH = "UPDATE bench_queue SET status = 'done', bill_no = ? WHERE id = ?"
_BUSY_S = 30.0


def drain(connection: sqlite3.Connection, pubsub: Any) -> None:
    sql = STATEMENTS["sqlite"]
    cursor = connection.cursor()
    while True:
        cursor.execute("BEGIN IMMEDIATE")
        claimed = cursor.execute(CLAIM).fetchall()
        cursor.execute("COMMIT")
        if not claimed:
            return
        for op_id, brands, payload in claimed:
            cursor.execute("BEGIN IMMEDIATE")
            bill_no = play(cursor, whole(sql, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
            cursor.execute(FINISH, (bill_no, op_id))
            cursor.execute("COMMIT")
            pubsub.publish(channel(op_id), done_message(op_id, bill_no))


def main() -> None:
    server = open_redis()
    connection = sqlite3.connect(database().removeprefix("sqlite:///"), timeout=_BUSY_S, isolation_level=None)
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):  # as durable as the product's own
        connection.execute(f"PRAGMA {pragma}")
    while True:
        drain(connection, server)
        server.brpop(WAKE, timeout=1)


if __name__ == "__main__":
    main()
