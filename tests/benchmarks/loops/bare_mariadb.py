"""By hand, MariaDB: claim 50, one transaction and one commit for each operation, one PUBLISH after it."""

from __future__ import annotations

import json
from typing import Any

import pymysql
from sqlalchemy import make_url

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, WAKE, database, open_redis
from tests.benchmarks.reference.body import STATEMENTS, channel, done_message, play, whole

SELECT = (
    "SELECT seq, id, brands, payload FROM bench_queue WHERE status = 'pending' ORDER BY seq LIMIT 50"
    " FOR UPDATE SKIP LOCKED"
)
CLAIM = "UPDATE bench_queue SET status = 'processing' WHERE seq IN %s"
FINISH = "UPDATE bench_queue SET status = 'done', bill_no = %s WHERE id = %s"


def drain(connection: Any, pubsub: Any) -> None:
    sql = STATEMENTS["mariadb"]
    cursor = connection.cursor()
    while True:
        cursor.execute(SELECT)
        claimed = cursor.fetchall()
        if claimed:
            cursor.execute(CLAIM, ([row[0] for row in claimed],))
        connection.commit()
        if not claimed:
            return
        for _, op_id, brands, payload in claimed:
            steps = whole(sql, op_id, brands, SUBSIDIARY, USER, json.loads(payload))
            bill_no = play(cursor, steps, returning=False)
            cursor.execute(FINISH, (bill_no, op_id))
            connection.commit()
            pubsub.publish(channel(op_id), done_message(op_id, bill_no))


def main() -> None:
    server, url = open_redis(), make_url(database())
    connection = pymysql.connect(
        host=url.host, port=url.port or 3306, user=url.username, database=url.database, charset="utf8mb4"
    )
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    while True:
        drain(connection, server)
        server.brpop(WAKE, timeout=1)


if __name__ == "__main__":
    main()
