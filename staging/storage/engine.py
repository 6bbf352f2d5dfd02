"""Engines for the three database families, with the limits and the semantics everything else relies on.

Make an engine after fork, never before: nothing here connects by itself, and a pooled connection must not cross a fork.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from staging.storage import undecodable
from staging.storage.sqlite_turns import WriteTurns

_READ_ONLY = "opstage_read_only"
_SQL_MODE = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_RECYCLE_S = (
    280  # below the usual idle cut of firewalls and proxies, so that a pooled connection is not found dead
)
_POSTGRESQL_READ: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_SNAPSHOT_READ = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def make_engine(
    url: str | URL,
    *,
    pool_size: int = 5,
    statement_timeout_s: float = 10.0,
    lock_timeout_s: float = 3.0,
    idle_in_transaction_s: float = 60.0,
    connect_timeout_s: float = 5.0,
    application_name: str = "opstage",
) -> Engine:
    """Return an engine for ``url`` (sqlite, postgresql+psycopg, mysql/mariadb+pymysql). Durations are seconds.

    READ COMMITTED on servers; on SQLite each transaction is ``BEGIN IMMEDIATE`` (the write lock is taken up front,
    waiting at most ``lock_timeout_s``), but for those of ``read_connection``. Raises ValueError for other databases
    and for in-memory SQLite.
    """
    parsed = make_url(url)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        engine = _sqlite(parsed, pool_size, lock_timeout_s, statement_timeout_s)
    elif backend == "postgresql":
        arguments = _postgresql_arguments(
            parsed,
            statement_timeout_s,
            lock_timeout_s,
            idle_in_transaction_s,
            connect_timeout_s,
            application_name,
        )
        engine = create_engine(
            parsed, isolation_level="READ COMMITTED", connect_args=arguments, **_pool(pool_size)
        )
    elif backend in ("mysql", "mariadb"):
        engine = _mysql(
            parsed, pool_size, statement_timeout_s, lock_timeout_s, idle_in_transaction_s, connect_timeout_s
        )
    else:
        raise ValueError(f"{backend}: Opstage runs on SQLite, PostgreSQL and MariaDB/MySQL")
    if backend != "sqlite":
        event.listen(engine, "begin", _on_begin)
    return engine


@contextmanager
def open_connection(engine: Engine) -> Iterator[Connection]:
    """A connection whose transaction is rolled back on leaving unless it was committed.

    What went wrong first is what gets out. A time limit or a shutdown that strikes inside the driver leaves the line
    out of step: the rollback fails as well, and its error would hide the time limit. Such a connection is dropped.
    """
    with engine.connect() as connection:
        try:
            yield connection
        except BaseException:
            try:
                connection.rollback()
            except SQLAlchemyError:
                connection.invalidate()
            raise


@contextmanager
def read_connection(engine: Engine) -> Iterator[Connection]:
    """A connection whose transaction sees one snapshot and cannot write (the database refuses)."""
    with open_connection(engine) as connection:
        # PostgreSQL is told by its BEGIN, without a round trip; the others by ``_on_begin``.
        on_postgresql = engine.dialect.name == "postgresql"
        yield connection.execution_options(**(_POSTGRESQL_READ if on_postgresql else {_READ_ONLY: True}))
        # Not left to a rollback: with one psycopg throws the connection's prepared statements away.
        connection.commit()


@contextmanager
def asking_connection(engine: Engine) -> Iterator[Connection]:
    """For reads that need no common snapshot. On PostgreSQL each statement is a transaction of its own, which spares
    the round trips of BEGIN and COMMIT; elsewhere, where those cost nothing or say more, a ``read_connection``."""
    if engine.dialect.name != "postgresql":
        with read_connection(engine) as connection:
            yield connection
        return
    with open_connection(engine) as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


def _pool(size: int) -> dict[str, Any]:
    # No pre-ping: it costs a round trip per checkout, and a dead connection is classified and retried anyway.
    return {
        # No overflow: what comes back above the pool's size is closed, and opening the next one costs many statements.
        "pool_size": 2 * size,
        "max_overflow": 0,
        "pool_timeout": 10,
        "pool_recycle": _RECYCLE_S,
        "pool_use_lifo": True,
        "pool_pre_ping": False,
    }


def _on_begin(connection: Connection) -> None:
    if _is_read_only(connection):
        connection.exec_driver_sql(_SNAPSHOT_READ)


def _is_read_only(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(_READ_ONLY))


def _postgresql_arguments(
    url: URL, statement_s: float, lock_s: float, idle_s: float, connect_s: float, application_name: str
) -> dict[str, Any]:
    options = {
        "timezone": "UTC",
        "statement_timeout": _ms(statement_s),
        "lock_timeout": _ms(lock_s),
        "idle_in_transaction_session_timeout": _ms(idle_s),
    }
    given = url.query.get("options", "")
    own = " ".join(f"-c {name}={value}" for name, value in options.items())
    return {
        "application_name": application_name,
        "options": f"{own} {given}".strip(),
        "connect_timeout": max(2, math.ceil(connect_s)),
        "keepalives": 1,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        # Notice a vanished peer even with data unacknowledged; a statement may still take its whole limit.
        "tcp_user_timeout": _ms(statement_s + connect_s),
    }


def _mysql(
    url: URL, pool_size: int, statement_s: float, lock_s: float, idle_s: float, connect_s: float
) -> Engine:
    reply_s = math.ceil(statement_s + lock_s + connect_s)  # the server's own limits must come first
    arguments = {
        "charset": "utf8mb4",
        "connect_timeout": math.ceil(connect_s),
        "read_timeout": reply_s,
        "write_timeout": reply_s,
    }
    engine = create_engine(url, isolation_level="READ COMMITTED", connect_args=arguments, **_pool(pool_size))

    def set_session(dbapi_connection: Any, _record: Any) -> None:
        undecodable.use_in_pymysql(dbapi_connection)
        settings: dict[str, str | float | int] = {
            "time_zone": "+00:00",
            "sql_mode": _SQL_MODE,
            "innodb_lock_wait_timeout": math.ceil(lock_s),
            "lock_wait_timeout": math.ceil(lock_s),
        }
        if "mariadb" in dbapi_connection.get_server_info().lower():
            settings["max_statement_time"] = statement_s
            settings["idle_transaction_timeout"] = math.ceil(idle_s)
        else:
            settings["max_execution_time"] = _ms(statement_s)  # MySQL limits SELECT only
        assignments = ", ".join(f"SESSION {name}=%s" for name in settings)
        with dbapi_connection.cursor() as cursor:
            cursor.execute(f"SET {assignments}", tuple(settings.values()))

    # First of all listeners, so that SQLAlchemy's own first look at the server already sees this sql_mode.
    event.listen(engine, "connect", set_session, insert=True)
    return engine


def sqlite_path(url: URL) -> Path:
    """The file an SQLite ``url`` names."""
    return Path(str(url.database).removeprefix("file:").partition("?")[0])


def _sqlite(url: URL, pool_size: int, lock_s: float, statement_s: float) -> Engine:
    if url.database in (None, "", ":memory:") or "mode=memory" in str(url):
        raise ValueError("an in-memory SQLite database cannot be shared between processes; name a file")
    sqlite_path(url).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": lock_s}, **_pool(pool_size))

    def on_connect(dbapi_connection: sqlite3.Connection, record: Any) -> None:
        dbapi_connection.text_factory = undecodable.decode
        dbapi_connection.isolation_level = None  # the driver opens no transactions; _on_begin does
        _use_wal(dbapi_connection, lock_s)
        for pragma in ("foreign_keys=ON", "synchronous=FULL"):
            dbapi_connection.execute(f"PRAGMA {pragma}")
        info = record.info

        def over_time() -> int:
            return int(time.monotonic() > info.get("statement_deadline", math.inf))

        dbapi_connection.set_progress_handler(over_time, 10_000)

    def start_clock(connection: Connection, *_: Any) -> None:
        connection.info["statement_deadline"] = time.monotonic() + statement_s + lock_s

    turns = WriteTurns(sqlite_path(url), lock_s)

    def begin(connection: Connection) -> None:
        read_only = _is_read_only(connection)
        connection.exec_driver_sql(f"PRAGMA query_only={int(read_only)}")
        if read_only:
            connection.exec_driver_sql("BEGIN")
        else:
            # A deferred transaction that turns to writing fails at once, whatever busy_timeout says (RELIABILITY B14).
            turns.begin(connection)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", begin)
    event.listen(engine, "before_cursor_execute", start_clock)
    return engine


def _use_wal(connection: sqlite3.Connection, lock_s: float) -> None:
    """Switch to WAL. Two processes doing so at the same instant get "locked"; no busy timeout is honoured there."""
    deadline = time.monotonic() + lock_s
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
