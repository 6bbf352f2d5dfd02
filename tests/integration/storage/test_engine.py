"""Engines: isolation, limits, clocks and read-only connections are what the rest relies on, on each database."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, select, text
from sqlalchemy.exc import DBAPIError

from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.engine import asking_connection, make_engine, read_connection

metadata = MetaData()
counter = Table("counter", metadata, Column("id", Integer, primary_key=True), Column("n", Integer))


@pytest.fixture
def filled(engine: Engine) -> Engine:
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(counter.insert(), [{"id": 1, "n": 0}, {"id": 2, "n": 0}])
    return engine


def _setting(engine: Engine, name: str) -> str:
    sql = {"postgresql": f"SHOW {name}", "sqlite": f"PRAGMA {name}"}.get(
        engine.dialect.name, f"SELECT @@{name}"
    )
    with engine.connect() as connection:
        return str(connection.execute(text(sql)).scalar()).lower()


def test_sessions_are_set_up(engine: Engine) -> None:
    expected = {
        "postgresql": {
            "transaction_isolation": "read committed",
            "timezone": "utc",
            "statement_timeout": "2s",
            "lock_timeout": "1s",
            "idle_in_transaction_session_timeout": "1min",
            "application_name": "opstage",
        },
        "sqlite": {"journal_mode": "wal", "foreign_keys": "1", "synchronous": "2", "busy_timeout": "1000"},
        "mariadb": {
            "tx_isolation": "read-committed",
            "time_zone": "+00:00",
            "character_set_connection": "utf8mb4",
            "innodb_lock_wait_timeout": "1",
            "max_statement_time": "2.0",
        },
    }[engine.dialect.name]
    assert {name: _setting(engine, name) for name in expected} == expected


def test_strict_mode_refuses_what_does_not_fit(engine: Engine) -> None:
    if engine.dialect.name != "mariadb":
        pytest.skip("only the MySQL family may truncate")
    assert "strict_all_tables" in _setting(engine, "sql_mode")


def test_an_update_of_the_same_value_counts_the_rows_it_found(filled: Engine) -> None:
    with filled.begin() as connection:
        assert connection.execute(counter.update().values(n=0)).rowcount == 2


def test_a_read_connection_cannot_write_and_leaves_no_trace(filled: Engine) -> None:
    with pytest.raises(DBAPIError), read_connection(filled) as connection:
        connection.execute(counter.update().values(n=5))
    with filled.begin() as connection:
        connection.execute(counter.update().values(n=6))
    with read_connection(filled) as connection:
        assert connection.execute(select(counter.c.n)).scalars().all() == [6, 6]


def test_a_read_connection_sees_one_snapshot(filled: Engine) -> None:
    with read_connection(filled) as reader:
        reader.execute(select(counter.c.n)).all()
        with filled.begin() as writer:
            writer.execute(counter.update().values(n=9))
        assert reader.execute(select(counter.c.n)).scalars().all() == [0, 0]
    with read_connection(filled) as reader:
        assert reader.execute(select(counter.c.n)).scalars().all() == [9, 9]


def test_writers_of_sqlite_wait_for_each_other_instead_of_failing(filled: Engine) -> None:
    """A read, then a write, in eight threads at once: a deferred BEGIN would fail without waiting."""
    failures: list[BaseException] = []

    def add_one() -> None:
        try:
            with filled.begin() as connection:
                locked = select(counter.c.n).where(counter.c.id == 1).with_for_update()
                n = connection.execute(locked).scalar_one()
                time.sleep(0.01)
                connection.execute(counter.update().where(counter.c.id == 1).values(n=n + 1))
        except BaseException as error:  # noqa: BLE001 - asserted on below
            failures.append(error)

    threads = [threading.Thread(target=add_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with filled.connect() as connection:
        assert connection.execute(select(counter.c.n).where(counter.c.id == 1)).scalar() == 8


def test_a_statement_that_takes_too_long_is_stopped(filled: Engine) -> None:
    slow = {
        "postgresql": "SELECT pg_sleep(30)",
        "sqlite": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT sum(x) FROM c",
        "mariadb": "SELECT SLEEP(30) FROM counter WHERE id = 1",
    }[filled.dialect.name]
    begun = time.monotonic()
    with pytest.raises(DBAPIError) as caught, filled.connect() as connection:
        connection.execute(text(slow)).all()
    assert classify_db_error(caught.value) is DbFailure.STATEMENT_TIMEOUT
    assert time.monotonic() - begun < 8
    with filled.connect() as connection:
        assert connection.execute(select(counter.c.n)).scalars().all() == [0, 0]


def test_nothing_connects_before_the_first_use(tmp_path: Path) -> None:
    make_engine(f"sqlite:///{tmp_path}/sub/dir/new.db")
    assert (tmp_path / "sub" / "dir").is_dir()
    assert not (tmp_path / "sub" / "dir" / "new.db").exists()
    make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    make_engine("mariadb+pymysql://nobody@127.0.0.1:1/none")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "oracle+oracledb://x/y"])
def test_a_database_that_cannot_serve_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="SQLite"):
        make_engine(url)


def _open_new_file(url: str, gate: Any, results: Any) -> None:
    gate.wait()
    try:
        with make_engine(url, lock_timeout_s=5).connect() as connection:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        results.put(mode)
    except BaseException as error:  # noqa: BLE001 - reported to the test
        results.put(repr(error))


def test_processes_that_open_a_new_sqlite_file_at_once_all_succeed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(4), context.Queue()
    url = f"sqlite:///{tmp_path}/fresh.db"
    processes = [context.Process(target=_open_new_file, args=(url, gate, results)) for _ in range(4)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=30) for _ in processes]
    for process in processes:
        process.join()
    assert answers == ["wal"] * 4


def test_who_asks_meets_what_is_committed_and_leaves_nothing_behind(filled: Engine) -> None:
    """Where the engine reads without locks; on the others it is one snapshot."""
    asked = select(counter.c.n).where(counter.c.id == 1)
    with asking_connection(filled) as connection:
        assert connection.execute(asked).scalar_one() == 0
        with filled.begin() as other:
            other.execute(counter.update().values(n=1))
        expected = 1 if filled.dialect.name == "postgresql" else 0
        assert connection.execute(asked).scalar_one() == expected
    # the next user of that connection has a transaction
    with filled.connect() as connection:
        connection.execute(counter.update().values(n=2))
        connection.rollback()
        assert connection.execute(asked).scalar_one() == 1
