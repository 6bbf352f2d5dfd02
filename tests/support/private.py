"""Servers of a test's own, on a free port, from the binaries on this machine: they may be killed, paused, filled."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pymysql

from staging.embedded.errors import EmbeddedServerError
from staging.embedded.postgres_server import EmbeddedPostgres, find_postgres_bin
from staging.embedded.redis_server import EmbeddedRedis
from staging.embedded.server import EmbeddedServer
from staging.embedded.spawn import require_reachable, run_as, unprivileged_account
from tests.support.services import missing

__all__ = ["EmbeddedPostgres", "EmbeddedRedis", "PrivateMariaDB", "open_folder", "private_postgres_bin"]

_INSTALL_TIMEOUT_S = 120.0


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that an unprivileged server may enter (pytest's own is closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="opstage-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def private_postgres_bin() -> Path:
    """The newest PostgreSQL of the system, else the wheel's; skips where there is neither."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]), reverse=True
    )
    if installed:
        return installed[0].parent
    try:
        return find_postgres_bin()
    except EmbeddedServerError as error:
        missing("there is no PostgreSQL to start", "install postgresql or opstage[embedded]", str(error))


class PrivateMariaDB(EmbeddedServer):
    """MariaDB on loopback, user root without a password, durable at commit; run by ``nobody`` where we are root."""

    name: ClassVar[str] = "mariadb"
    ready_timeout_s: ClassVar[float] = 60.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path, *, port: int | None = None, options: tuple[str, ...] = ()) -> None:
        """``options``: further arguments of mariadbd, e.g. ``"--innodb-snapshot-isolation=ON"``."""
        super().__init__(data_dir, port=port, account=unprivileged_account())
        self._server = shutil.which("mariadbd", path=_SEARCH)
        self._installer = shutil.which("mariadb-install-db", path=_SEARCH)
        self._options = options
        if not self._server or not self._installer:
            missing("there is no mariadbd to start", "install mariadb-server")

    @property
    def url(self) -> str:
        return f"mariadb+pymysql://root@127.0.0.1:{self.port}/opstage"

    @property
    def _files(self) -> Path:
        return self.data_dir / "data"

    def _prepare(self) -> None:
        if self._files.exists():
            return
        require_reachable(self.data_dir, self.account)
        result = run_as(
            self.account,
            [
                *(str(self._installer), "--no-defaults", f"--datadir={self._files}", "--skip-test-db"),
                *("--auth-root-authentication-method=normal", "--cross-bootstrap"),
            ],
            cwd=self.data_dir,
            timeout_s=_INSTALL_TIMEOUT_S,
        )
        if result.returncode:
            raise AssertionError(f"mariadb-install-db failed:\n{result.stdout}{result.stderr}")

    def _command(self) -> list[str | Path]:
        return [
            *(str(self._server), "--no-defaults", f"--datadir={self._files}", "--bind-address=127.0.0.1"),
            *(
                f"--port={self.port}",
                f"--socket={self.data_dir / 's'}",
                f"--pid-file={self.data_dir / 'pid'}",
            ),
            *("--character-set-server=utf8mb4", "--skip-name-resolve", "--innodb-buffer-pool-size=64M"),
            *("--innodb-log-file-size=32M", "--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"),
            *self._options,
        ]

    def _answers(self) -> bool:
        try:
            connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=2)
        except pymysql.err.OperationalError:
            return False  # not yet
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS opstage CHARACTER SET utf8mb4")
        return True


_SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
