"""By hand, PostgreSQL, group commit: 50 of this process's own tenants in one transaction, a savepoint for each."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from tests.benchmarks.loops.bare import FINISH
from tests.benchmarks.loops.wire import SUBSIDIARY, USER, WAKE, database, open_redis, worker_number
from tests.benchmarks.reference.body import STATEMENTS, channel, done_message, play, whole

CLAIM = (
    "UPDATE bench_queue SET status = 'processing' WHERE seq IN (SELECT seq FROM bench_queue WHERE status = 'pending'"
    " AND shard %% %s = %s ORDER BY seq LIMIT 50 FOR UPDATE SKIP LOCKED) RETURNING id, brands, payload"
)


def drain(connection: psycopg.Connection[Any], pubsub: Any) -> None:
    sql = STATEMENTS["postgresql"]
    number, of = worker_number()
    while True:
        claimed = connection.execute(CLAIM, (of, number)).fetchall()
        connection.commit()
        if not claimed:
            return
        messages = []
        with connection.cursor() as cursor:
            for op_id, brands, payload in sorted(claimed, key=lambda row: (row[1], row[0])):
                cursor.execute("SAVEPOINT one")
                bill_no = play(cursor, whole(sql, op_id, brands, SUBSIDIARY, USER, json.loads(payload)))
                cursor.execute(FINISH, (bill_no, op_id))
                cursor.execute("RELEASE SAVEPOINT one")
                messages.append((channel(op_id), done_message(op_id, bill_no)))
        connection.commit()
        with pubsub.pipeline(transaction=False) as pipeline:
            for message in messages:
                pipeline.publish(*message)
            pipeline.execute()


def main() -> None:
    server = open_redis()
    with psycopg.connect(database()) as connection:
        while True:
            drain(connection, server)
            server.brpop(WAKE, timeout=1)


if __name__ == "__main__":
    main()
