"""What is tortured: private servers, two workers with shifted clocks, an API, three beats."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pymysql
from sqlalchemy import make_url

from staging.embedded.server import EmbeddedServer
from tests.support.api import ApiProcess
from tests.support.private import (
    EmbeddedPostgres,
    EmbeddedRedis,
    PrivateMariaDB,
    open_folder,
    private_postgres_bin,
)
from tests.support.processes import ROOT, BeatProcess, LoggedProcess, WorkerProcess
from tests.support.services import missing
from tests.support.world import ADAPTER, SEAL_KEY, Databases, create_tables

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
PLANTED = "tests.torture.planted:build_adapter"
# Leases lapse within seconds; nested as Settings demands, for MariaDB too, which counts lock waits in whole seconds.
LIMITS = {
    "OPSTAGE_LOCK_TIMEOUT_S": "0.4",
    "OPSTAGE_STATEMENT_TIMEOUT_S": "1.4",
    "OPSTAGE_DRAIN_BUDGET_S": "1.0",
    "OPSTAGE_SOFT_TIME_LIMIT_S": "4.0",
    "OPSTAGE_HARD_TIME_LIMIT_S": "5.0",
    "OPSTAGE_GRACE_S": "0.5",
    "OPSTAGE_LEASE_S": "5.5",
    "OPSTAGE_SWEEP_INTERVAL_S": "1.0",
    "OPSTAGE_ANNOUNCE_AFTER_S": "1.0",
    "OPSTAGE_BACKOFF_BASE_S": "0.05",
    "OPSTAGE_BACKOFF_MAX_S": "0.5",
    "OPSTAGE_MAX_ATTEMPTS": "4",
    "OPSTAGE_RATE_LIMIT": "1000000/minute",
}


@dataclass(frozen=True)
class Options:
    """``settings``: OPSTAGE_* variables on top of ``LIMITS``; ``plant``: what is removed (see ``planted``).

    ``kinds``: faults to choose from, all where empty. ``windows``: the failpoints of the first worker alone, instead of
    a choice for each. ``plain``: operations that all succeed. ``pace``
    stretches the time they take (quick ones share commits). ``http``: whether there is an API.
    """

    kind: str = "postgresql"
    shared: bool = True
    seconds: float = 60.0
    seed: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    plant: str = ""
    kinds: tuple[str, ...] = ()
    windows: str = ""
    plain: bool = False
    pace: float = 1.0
    http: bool = True
    beats: int = 3
    clients: int = 8


@dataclass
class Scene:
    """``database`` is None for SQLite. ``env`` is that of API and clients; workers load what was planted."""

    options: Options
    where: Databases
    redis: EmbeddedRedis
    database: EmbeddedServer | None
    env: dict[str, str]
    folder: Path
    clocks: tuple[str, ...]
    workers: list[WorkerProcess]
    beats: list[BeatProcess]
    api: ApiProcess

    @property
    def processes(self) -> list[LoggedProcess]:
        return [*self.workers, *([self.api] if self.options.http else []), *self.beats]

    def terminate_backends(self) -> None:
        """Hang up on every client of the database, as an administrator or a failover would."""
        url = make_url(self.where.queue_url)
        if self.where.kind == "postgresql":
            with psycopg.connect(
                host="127.0.0.1", port=url.port, user=url.username, password=url.password, dbname="postgres",
                connect_timeout=5, autocommit=True,
            ) as connection:  # fmt: skip
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                )
            return
        own = pymysql.connect(host="127.0.0.1", port=url.port or 0, user="root", connect_timeout=5)
        with own, own.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()")
            for (number,) in cursor.fetchall():
                try:
                    cursor.execute(f"KILL {int(number)}")
                except pymysql.err.OperationalError:
                    continue  # it has hung up by itself

    def stop_immediately(self) -> None:
        """PostgreSQL's immediate shutdown (``pg_ctl stop -m immediate``): no checkpoint, recovery at the next start."""
        assert self.database is not None
        os.kill(self.database.pid, signal.SIGQUIT)
        self.database.stop()


@contextmanager
def open_scene(options: Options, logs: Path) -> Iterator[Scene]:
    """Servers started, databases empty, processes yet to be started; all ended afterwards. ``logs``: a folder for the
    processes' output."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        database = _server(options.kind, folder)
        if database is not None:
            stack.enter_context(database)
        where = _databases(options, database, folder)
        create_tables(where)
        env = _env(options, where, redis, folder)
        workers, clocks = _workers(options, env, logs)
        beats = [BeatProcess(env, logs, name=f"beat{n + 1}") for n in range(options.beats)]
        scene = Scene(
            options, where, redis, database, env, folder, clocks, workers, beats, ApiProcess(env, logs)
        )
        for process in scene.processes:
            stack.callback(_end, process)
        yield scene


def _server(kind: str, folder: Path) -> EmbeddedServer | None:
    if kind == "postgresql":
        return EmbeddedPostgres(folder / "db", private_postgres_bin(), options={"max_connections": "200"})
    if kind == "mariadb":
        return PrivateMariaDB(folder / "db")
    return None


def _databases(options: Options, server: EmbeddedServer | None, folder: Path) -> Databases:
    if server is None:
        urls = [f"sqlite:///{folder / name}.db" for name in ("queue", "erp")]
    else:
        # MariaDB's root may create databases, as PostgreSQL's opstage may.
        second = make_url(server.url).set(database="opstage_erp").render_as_string(hide_password=False)
        urls = [server.url, second]
        if not options.shared:
            _create_database(options.kind, server.url)
    return Databases(options.kind, urls[0], urls[0] if options.shared else urls[1])


def _create_database(kind: str, url: str) -> None:
    parsed = make_url(url)
    if kind == "postgresql":
        with psycopg.connect(
            host="127.0.0.1", port=parsed.port, user=parsed.username, password=parsed.password,
            dbname="postgres", autocommit=True,
        ) as connection:  # fmt: skip
            connection.execute("CREATE DATABASE opstage_erp")
        return
    own = pymysql.connect(host="127.0.0.1", port=parsed.port or 0, user="root")
    with own, own.cursor() as cursor:
        cursor.execute("CREATE DATABASE opstage_erp CHARACTER SET utf8mb4")


def _env(options: Options, where: Databases, redis: EmbeddedRedis, folder: Path) -> dict[str, str]:
    data = folder / "data"
    data.mkdir()
    return {
        **LIMITS,
        "OPSTAGE_DATABASE_URL": where.queue_url,
        "OPSTAGE_ERP_DATABASE_URL": "" if where.shared else where.erp_url,
        "OPSTAGE_REDIS_URL": redis.url,
        "OPSTAGE_ERP_ADAPTER": ADAPTER,
        "OPSTAGE_SEAL_KEY": SEAL_KEY,
        "OPSTAGE_DATA_DIR": str(data),
        **options.settings,
    }


def _workers(
    options: Options, env: Mapping[str, str], logs: Path
) -> tuple[list[WorkerProcess], tuple[str, ...]]:
    """Two workers; where libfaketime is installed, one is two hours ahead and one two hours behind."""
    clocks = ("+2h", "-2h")
    if FAKETIME is None:
        if os.environ.get("OPSTAGE_REQUIRE_SERVICES") == "1":
            missing("workers' clocks cannot be shifted", "install libfaketime")
        clocks = ("", "")
    planted = {"OPSTAGE_ERP_ADAPTER": PLANTED, "TORTURE_PLANT": options.plant} if options.plant else {}
    workers = []
    for number, clock in enumerate(clocks, start=1):
        # Monotonic clocks tick on: what is shifted is what an administrator can shift.
        shifted = {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME": clock,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": f"{ROOT}:{Path(__file__).with_name('shifted')}",
        }
        own = {**env, **planted, **(shifted if clock else {})}
        workers.append(WorkerProcess(own, logs, name=f"worker{number}", concurrency=2))
    return workers, clocks


def _end(process: LoggedProcess) -> None:
    if process.started and process.alive():
        process.kill_all()
