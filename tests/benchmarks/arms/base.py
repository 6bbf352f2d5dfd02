"""What an arm of the comparison is: a way to hold a backlog, and processes that work it off."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.pool import NullPool

from tests.benchmarks.reference import outcome
from tests.benchmarks.reference.orders import Order
from tests.benchmarks.servers import Bench
from tests.support.processes import ROOT, LoggedProcess

PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"


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

    def prepare(self, run: Run) -> None:
        """Whatever this arm's database needs beyond the template. Not measured."""

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        """Make ``orders`` wait for a worker. Not measured."""
        raise NotImplementedError

    def workers(self, run: Run) -> list[LoggedProcess]:
        """The processes to measure, not started."""
        raise NotImplementedError

    def problems(self, run: Run, connection: Connection, expected: Collection[str]) -> list[str]:
        """What is wrong after the run; empty when everything is as it must be."""
        return outcome.problems(connection, expected, counter=self.counter)
