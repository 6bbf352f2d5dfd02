"""Turns at SQLite's write lock: real processes that all want to write get it one after the other, whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.engine import make_engine

_CONTEXT = multiprocessing.get_context("spawn")
_RACERS, _EACH = 3, 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turns.db"


@pytest.fixture
def database(path: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{path}", lock_timeout_s=1.0)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE turn (id INTEGER PRIMARY KEY, who INTEGER NOT NULL)"))
    yield engine
    engine.dispose()


def _write(engine: Engine, who: int = 0, busy_s: float = 0.0) -> None:
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO turn (who) VALUES (:who)"), {"who": who})
        time.sleep(busy_s)


def _race(path: Path, who: int, gate: Any) -> None:
    engine = make_engine(f"sqlite:///{path}", lock_timeout_s=30.0)
    engine.connect().close()
    gate.wait()
    for _ in range(_EACH):
        _write(engine, who, busy_s=0.003)


def _hold_line(path: Path, began: Any) -> None:
    """Be the next in line for ever: the write lock is held by the test."""
    engine = make_engine(f"sqlite:///{path}", lock_timeout_s=60.0)
    engine.connect().close()
    began.set()
    _write(engine)


def _hold_database(path: Path, began: Any) -> None:
    engine = make_engine(f"sqlite:///{path}", lock_timeout_s=60.0)
    with engine.begin():
        began.set()
        time.sleep(60)


@contextmanager
def _another(target: Any, path: Path) -> Iterator[SpawnProcess]:
    began = _CONTEXT.Event()
    process = _CONTEXT.Process(target=target, args=(path, began), daemon=True)
    process.start()
    try:
        assert began.wait(30)
        yield process
    finally:
        process.kill()
        process.join()


@contextmanager
def _foreign_writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A program that knows of no turns."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_processes_that_write_without_pause_take_turns(database: Engine, path: Path) -> None:
    gate = _CONTEXT.Barrier(_RACERS)
    racers = [_CONTEXT.Process(target=_race, args=(path, who, gate)) for who in range(_RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    with database.connect() as connection:
        turns = connection.execute(text("SELECT who FROM turn ORDER BY id")).scalars().all()
    assert len(turns) == _RACERS * _EACH
    all_there = turns[: next(n for n in range(len(turns)) if turns[: n + 1].count(turns[n]) == _EACH)]
    at_once = sum(one == two for one, two in pairwise(all_there))
    assert at_once < len(all_there) / 4, f"{at_once} of {len(all_there)} turns went to the one before"
    assert min(all_there.count(who) for who in range(_RACERS)) > _EACH / 2


def test_who_is_killed_leaves_the_line(database: Engine, path: Path) -> None:
    with _foreign_writer(path) as held, _another(_hold_line, path) as waiting:
        with pytest.raises(OperationalError):
            _write(database)
        assert waiting.pid
        os.kill(waiting.pid, signal.SIGKILL)
        waiting.join()
        held.execute("ROLLBACK")
        began = time.monotonic()
        _write(database)
        assert time.monotonic() - began < 0.5


def test_who_is_stopped_in_the_line_keeps_nobody_for_longer_than_the_limit(
    database: Engine, path: Path
) -> None:
    with _foreign_writer(path) as held, _another(_hold_line, path) as waiting:
        time.sleep(0.3)
        assert waiting.pid
        os.kill(waiting.pid, signal.SIGSTOP)
        held.execute("ROLLBACK")
        _write(database)
        assert waiting.is_alive()


@pytest.mark.parametrize("known", [True, False], ids=["one-of-ours", "foreign"])
def test_a_lock_that_is_not_given_back_ends_in_busy_after_the_limit(
    database: Engine, path: Path, known: bool
) -> None:
    holder = _another(_hold_database, path) if known else _foreign_writer(path)
    with holder:
        began = time.monotonic()
        with pytest.raises(OperationalError) as caught:
            _write(database)
        assert classify_db_error(caught.value) is DbFailure.BUSY
        assert 0.9 < time.monotonic() - began < 2
    _write(database)


def test_where_the_file_cannot_be_made_sqlites_own_lock_decides(database: Engine, path: Path) -> None:
    line = Path(f"{path}-turn")
    line.unlink()
    line.mkdir()
    _write(database)
    with _foreign_writer(path), pytest.raises(OperationalError):
        _write(database)


def test_the_limit_of_other_statements_is_as_it_was(database: Engine) -> None:
    with database.begin() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 1000


def test_a_database_that_is_none_is_told_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is no database" * 100)
    with pytest.raises(Exception, match="not a database") as caught:
        _write(make_engine(f"sqlite:///{path}"))
    assert type(caught.value).__module__ == "sqlalchemy.exc"
