"""Turns at SQLite's one write lock.

SQLite wakes nobody: who waits asks again after sleeps of up to 100 ms, and whoever commits and begins again at once is
there first. So who begins holds a lock on a file beside the database until the transaction has begun: one alone asks
for SQLite's lock, often, and who comes later waits behind it, the one that has just committed as well.

Only the order hangs on that file. Where it cannot be locked (Windows, no right to make it, somebody stopped while
holding it), and among programs that do not know it, SQLite's lock decides as ever.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from sqlalchemy import Connection

from staging.storage.dberrors import DbFailure, classify_db_error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_BEGIN = "BEGIN IMMEDIATE"
_AGAIN_S = 0.001


class WriteTurns:
    """Write transactions on the SQLite database ``path``, each waiting ``wait_s`` for its turn at most."""

    def __init__(self, path: Path, wait_s: float) -> None:
        # Not the database itself: closing that a second time would drop the locks SQLite holds on it.
        self._line = f"{path}-turn"
        self._wait_s = wait_s

    def begin(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE. Raises what SQLAlchemy makes of "locked" where the wait was in vain."""
        deadline = time.monotonic() + self._wait_s
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        with self._next_in_line(deadline):
            driver.execute("PRAGMA busy_timeout=0")
            try:
                while time.monotonic() < deadline:
                    try:
                        driver.execute(_BEGIN)
                        return
                    except sqlite3.Error as error:
                        if classify_db_error(error) is not DbFailure.BUSY:
                            break
                    time.sleep(_AGAIN_S)
                connection.exec_driver_sql(_BEGIN)  # SQLAlchemy tells of its failure as of any statement's
            finally:
                driver.execute(f"PRAGMA busy_timeout={round(self._wait_s * 1000)}")

    @contextmanager
    def _next_in_line(self, deadline: float) -> Iterator[None]:
        """Nobody else of ours asks meanwhile, unless that cannot be had before ``deadline`` (monotonic seconds)."""
        line = self._open()
        try:
            while line is not None and not _locked(line) and time.monotonic() < deadline:
                time.sleep(_AGAIN_S)
            yield
        finally:
            if line is not None:
                os.close(line)

    def _open(self) -> int | None:
        """Anew each time: the lock belongs to what was opened, and threads must not share one."""
        if fcntl is None:
            return None
        try:
            return os.open(self._line, os.O_RDONLY | os.O_CREAT, 0o644)
        except OSError:
            return None


def _locked(line: int) -> bool:
    """True also where this file system has no such locks: SQLite's own decides alone then."""
    try:
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
