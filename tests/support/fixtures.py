"""Fixtures of the whole test tree, loaded by tests/conftest.py. See the functions for what each one gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.databases import fresh_database
from tests.support.private import (
    EmbeddedPostgres,
    EmbeddedRedis,
    PrivateMariaDB,
    open_folder,
    private_postgres_bin,
)
from tests.support.processes import BeatProcess, WorkerProcess

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[str]:
    """URL of an empty SQLite database."""
    with fresh_database("sqlite", tmp_path) as url:
        yield url


@pytest.fixture
def postgres_database(tmp_path: Path) -> Iterator[str]:
    """URL of an empty database on the machine's PostgreSQL, dropped afterwards."""
    with fresh_database("postgresql", tmp_path) as url:
        yield url


@pytest.fixture
def mariadb_database(tmp_path: Path) -> Iterator[str]:
    """URL of an empty database on the machine's MariaDB, dropped afterwards."""
    with fresh_database("mariadb", tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def session_redis() -> Iterator[EmbeddedRedis]:
    """One Redis for the whole run; ask for ``redis_url`` instead."""
    with open_folder() as folder, EmbeddedRedis(folder / "redis") as server:
        yield server


@pytest.fixture
def redis_url(session_redis: EmbeddedRedis) -> str:
    """URL of an empty Redis of this test run's own. Not to be killed or reconfigured: see ``private_redis``."""
    client = session_redis.client()
    client.flushall()
    client.close()
    return session_redis.url


@pytest.fixture
def private_redis() -> Iterator[EmbeddedRedis]:
    """A running Redis to kill9, pause, restart or reconfigure."""
    with open_folder() as folder, EmbeddedRedis(folder / "redis") as server:
        yield server


@pytest.fixture
def private_postgres() -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL to kill9, pause, restart (about 1 s to make)."""
    with open_folder() as folder, EmbeddedPostgres(folder / "postgres", private_postgres_bin()) as server:
        yield server


@pytest.fixture
def private_mariadb() -> Iterator[PrivateMariaDB]:
    """A running MariaDB to kill9, pause, restart (a few seconds to make)."""
    with open_folder() as folder, PrivateMariaDB(folder / "mariadb") as server:
        yield server


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    """``start_worker(env, name="w1", concurrency=2)`` → a ready WorkerProcess; all are stopped at the end."""
    started: list[WorkerProcess] = []

    def start(env: Mapping[str, str], *, name: str = "", concurrency: int = 1) -> WorkerProcess:
        name = name or f"worker{len(started) + 1}"
        worker = WorkerProcess(env, tmp_path, name=name, concurrency=concurrency)
        started.append(worker)
        return worker.start()

    yield start
    for worker in started:
        worker.stop()


@pytest.fixture
def start_beat(tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], BeatProcess]]:
    """``start_beat(env)`` → a ready BeatProcess; all are stopped at the end."""
    started: list[BeatProcess] = []

    def start(env: Mapping[str, str]) -> BeatProcess:
        beat = BeatProcess(env, tmp_path, name=f"beat{len(started) + 1}")
        started.append(beat)
        return beat.start()

    yield start
    for beat in started:
        beat.stop()
