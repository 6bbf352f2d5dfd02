"""What an arm of the comparison is: a way to hold a backlog, and processes that work it off."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from tests.benchmarks.reference import outcome
from tests.benchmarks.reference.orders import Order
from tests.benchmarks.servers import Bench
from tests.support.processes import LoggedProcess, clean_environment


@dataclass(frozen=True)
class Run:
    """One run of one arm: its own database and an empty Redis."""

    bench: Bench
    url: str
    folder: Path
    workers: int = 2
    settings: Mapping[str, str] | None = None

    @property
    def redis_url(self) -> str:
        return self.bench.redis.url

    @property
    def dsn(self) -> str:
        """The database as drivers take it: libpq's URL, or what SQLAlchemy says for the others."""
        return self.url.replace("postgresql+psycopg://", "postgresql://")

    @property
    def environment(self) -> dict[str, str]:
        """For processes that are not ours."""
        return {"BENCH_DATABASE": self.dsn, "BENCH_REDIS": self.redis_url, "BENCH_WORKERS": str(self.workers)}

    def connect(self) -> Connection:
        return create_engine(make_url(self.url), poolclass=NullPool).connect()


class Arm:
    """``name`` as the command line says it; ``label`` for tables. ``commit``: what one commit covers."""

    name: str
    label: str
    commit: str = "op"
    engines: Collection[str] = ("postgresql",)
    counter = "own"
    waits = True  # False: there is no latency to be measured
    done = """SELECT count(*) FROM ai_op_ledger WHERE "sCommandType" <> 'seed'"""
    """SELECT count(*) of operations that have come to their end."""
    moments = """SELECT "tCreateDate" FROM ai_op_ledger WHERE "sCommandType" <> 'seed' ORDER BY 1"""
    """SELECT of when each of them did, ascending, by the database's clock (this machine's)."""
    still_open = ""
    """SELECT count(*) of operations whose status is still to be written, where the ledger alone does not tell."""

    def prepare(self, run: Run) -> None:
        """Whatever this arm's database needs beyond the template. Not measured."""

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        """Make ``orders`` wait for a worker. Not measured."""
        raise NotImplementedError

    def workers(self, run: Run) -> list[LoggedProcess]:
        """The processes to measure, not started."""
        raise NotImplementedError

    def waits_ms(self, run: Run, count: int) -> list[float]:
        """Idle latency: hand over ``count`` operations one at a time, each until its message; milliseconds."""
        raise NotImplementedError

    def count_done(self, connection: Connection) -> int:
        """How many operations have come to their end."""
        count = int(connection.execute(text(outcome.names(connection, self.done))).scalar_one())
        connection.rollback()
        return count

    def completions(self, connection: Connection) -> list[float]:
        """When each operation came to its end, ascending, as time.time() has it."""
        rows = connection.execute(text(outcome.names(connection, self.moments)))
        return [_seconds(row[0]) for row in rows]

    def waiting(self, connection: Connection) -> int:
        """How many operations have not come to their visible end."""
        if not self.still_open:
            return 0
        count = int(connection.execute(text(outcome.names(connection, self.still_open))).scalar_one())
        connection.rollback()
        return count

    def problems(self, run: Run, connection: Connection, expected: Collection[str]) -> list[str]:
        """What is wrong after the run; empty when everything is as it must be."""
        return outcome.problems(connection, expected, counter=self.counter)


def _seconds(value: Any) -> float:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def program(python: str, module: str, run: Run, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a client program to its end; returns what it printed. AssertionError with its complaint where it fails."""
    done = subprocess.run(
        [python, "-m", module, *arguments],
        env=clean_environment({**run.environment, **(env or {})}),
        cwd=run.folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise AssertionError(f"{module} {' '.join(arguments)}: {done.stderr[-3000:]}")
    return done.stdout


def asked(
    python: str, module: str, run: Run, count: int, env: Mapping[str, str] | None = None
) -> list[float]:
    """What the program measured by ``latency``."""
    waits: list[float] = json.loads(program(python, module, run, "latency", str(count), env=env))
    return waits
