"""Private servers with their default durability (fsync at commit), and a fresh reference database for each run."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from migrations.run import upgrade
from tests.benchmarks.reference import history
from tests.benchmarks.reference.orders import PAYLOAD_BYTES
from tests.benchmarks.reference.tables import metadata
from tests.support.private import (
    EmbeddedPostgres,
    EmbeddedRedis,
    PrivateMariaDB,
    open_folder,
    private_postgres_bin,
)

TEMPLATE = "bench_template"


@dataclass
class Bench:
    """One database server and one Redis of our own. ``server_pid`` None: SQLite, which works inside its callers."""

    kind: str
    folder: Path
    redis: EmbeddedRedis
    server: EmbeddedPostgres | PrivateMariaDB | None
    history_rows: int = 20_000
    tenants: int = 20
    history_bytes: int = PAYLOAD_BYTES
    _made: set[str] = field(default_factory=set)

    @property
    def server_pid(self) -> int | None:
        return self.server.pid if self.server else None

    def url(self, name: str) -> str:
        """The URL, password included, of one of our databases."""
        if self.server is None:
            return f"sqlite:///{self.folder / name}.db"
        return make_url(self.server.url).set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def database(self) -> Iterator[str]:
        """URL of a new copy of the template: tables, tenants, history, statistics. Dropped afterwards."""
        self._template()
        name = f"run_{secrets.token_hex(4)}"
        if self.kind == "postgresql":
            self._admin(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY", "CHECKPOINT")
        elif self.kind == "sqlite":
            shutil.copy(self.folder / f"{TEMPLATE}.db", self.folder / f"{name}.db")
        else:
            self._admin(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
            build(self.url(name), self.history_rows, self.tenants, self.history_bytes)
        try:
            yield self.url(name)
        finally:
            if self.kind == "sqlite":
                for file in self.folder.glob(f"{name}.db*"):
                    file.unlink()
            else:
                self._admin(f"DROP DATABASE {name}" + (" WITH (FORCE)" if self.kind == "postgresql" else ""))

    def _template(self) -> None:
        if self.kind == "mariadb" or TEMPLATE in self._made:
            return
        if self.kind == "postgresql":
            self._admin(f"CREATE DATABASE {TEMPLATE}")
        build(self.url(TEMPLATE), self.history_rows, self.tenants, self.history_bytes)
        self._made.add(TEMPLATE)

    def _admin(self, *statements: str) -> None:
        if self.server is None:
            raise LookupError("SQLite has no server")
        engine = create_engine(self.server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))


def build(url: str, rows: int, tenants: int, payload_bytes: int = PAYLOAD_BYTES) -> None:
    """The product's tables as ``opstage db upgrade`` makes them, the reference tables, tenants and history."""
    for tree in ("queue", "erp"):
        upgrade(url, tree)
    engine: Engine = create_engine(url, poolclass=NullPool)
    metadata.create_all(engine)
    history.fill(engine, rows, tenants, payload_bytes)
    engine.dispose()


@contextmanager
def bench(
    kind: str, *, history_rows: int = 20_000, tenants: int = 20, history_bytes: int = PAYLOAD_BYTES
) -> Iterator[Bench]:
    """Start what ``kind`` (postgresql, mariadb, sqlite) needs; everything is gone afterwards."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        server: EmbeddedPostgres | PrivateMariaDB | None = None
        if kind == "postgresql":
            options = {"max_connections": "100"}
            server = stack.enter_context(
                EmbeddedPostgres(folder / "pg", private_postgres_bin(), options=options)
            )
        elif kind == "mariadb":
            server = stack.enter_context(PrivateMariaDB(folder / "my"))
        runs = folder / "runs"
        runs.mkdir()
        yield Bench(kind, runs, redis, server, history_rows, tenants, history_bytes)
