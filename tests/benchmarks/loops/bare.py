"""By hand, PostgreSQL: claim 50, one transaction and one commit for each operation, one PUBLISH after it."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, WAKE, database, open_redis
from tests.benchmarks.reference.body import STATEMENTS, channel, done_message, play, whole

CLAIM = (
    "UPDATE bench_queue SET status = 'processing' WHERE seq IN (SELECT seq FROM bench_queue WHERE status = 'pending'"
    " ORDER BY seq LIMIT 50 FOR UPDATE SKIP LOCKED) RETURNING id, brands, payload"
)
FINISH = "UPDATE bench_queue SET status = 'done', bill_no = %s WHERE id = %s"


def drain(connection: psycopg.Connection[Any], pubsub: Any) -> None:
    sql = STATEMENTS["postgresql"]
    while True:
        claimed = connection.execute(CLAIM).fetchall()
        connection.commit()
        if not claimed:
            return
        for op_id, brands, payload in claimed:
            with connection.cursor() as cursor:
                bill_no = play(cursor, whole(sql, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
                cursor.execute(FINISH, (bill_no, op_id))
            connection.commit()
            pubsub.publish(channel(op_id), done_message(op_id, bill_no))


def main() -> None:
    server = open_redis()
    with psycopg.connect(database()) as connection:
        while True:
            drain(connection, server)
            server.brpop(WAKE, timeout=1)


if __name__ == "__main__":
    main()
