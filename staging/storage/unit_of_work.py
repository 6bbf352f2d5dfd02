"""One transaction on the queue's database, and what to tell after its commit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError, Transient
from staging.domain.operation import Told
from staging.storage import journal
from staging.storage.dberrors import DbFailure, classify_db_error, needs_upgrade
from staging.storage.engine import asking_connection, open_connection, read_connection

T = TypeVar("T")
_TRIES = 5
_AGAIN = {DbFailure.DEADLOCK, DbFailure.SERIALIZATION, DbFailure.BUSY}


class UnitOfWork:
    """``connection`` is inside a transaction. ``touch`` what was moved, or ``tell`` it; ``commit`` fills ``told``."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.told: list[Told] = []
        self.committing = False
        self._known: list[Told] = []
        self._touched: list[str] = []

    def touch(self, *op_ids: str) -> None:
        """Their newest events are to be published after the commit."""
        self._touched += op_ids

    def tell(self, told: Sequence[Told]) -> None:
        """``touch`` where the newest events are known without reading them."""
        self._known += told

    def collect(self) -> list[Told]:
        """What is to be told; call it last inside a transaction that somebody else commits."""
        read = journal.newest(self.connection, self._touched) if self._touched else []
        return [*self._known, *read]

    def commit(self) -> None:
        """Commit; an exception from here means *unknown*, never *rolled back* (RELIABILITY A10, A12, B9)."""
        told = self.collect()
        self.committing = True
        self.connection.commit()
        self.told = told


@contextmanager
def savepoint(connection: Connection) -> Iterator[None]:
    """What is done inside is undone if an ``OpstageError`` gets out; a database error leaves all to the transaction."""
    nested = connection.begin_nested()
    try:
        yield
    except OpstageError:
        nested.rollback()
        raise
    nested.commit()


class QueueStore:
    """Where the queue lives. Holds the engine; make it after fork.

    A database that was not migrated to this release is ``unavailable``, and the error says what to do.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._user_column: bool | None = None

    @contextmanager
    def begin(self) -> Iterator[UnitOfWork]:
        """A transaction that is rolled back unless ``commit`` was called."""
        with _up_to_date(), open_connection(self.engine) as connection:
            yield UnitOfWork(connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only snapshot."""
        with _up_to_date(), read_connection(self.engine) as connection:
            yield connection

    @contextmanager
    def ask(self) -> Iterator[Connection]:
        """For reads that need no common snapshot, and are cheaper without."""
        with _up_to_date(), asking_connection(self.engine) as connection:
            yield connection

    def transact(self, work: Callable[[UnitOfWork], T]) -> tuple[T, list[Told]]:
        """Run ``work`` in a transaction and commit; returns its value and what is to be told.

        A deadlock or a busy database before COMMIT runs the whole ``work`` again, a few times; a pooled connection that
        turns out to have died while idle does so once. Raises ``unavailable`` (Transient) when the database cannot be
        reached; where that happens in COMMIT, the outcome is unknown and the caller's next compare-and-set or key
        lookup tells.
        """
        unit: UnitOfWork | None = None
        for attempt in range(1, _TRIES + 1):
            try:
                with self.begin() as unit:
                    value = work(unit)
                    unit.commit()
                    return value, unit.told
            except SQLAlchemyError as error:
                failure = classify_db_error(error)
                before_commit = unit is not None and not unit.committing
                if attempt == 1 and before_commit and _was_established(error):
                    continue
                if failure in _AGAIN and attempt < _TRIES:
                    time.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311 - jitter, no secret
                elif failure.is_transient:
                    raise Transient(ErrorCode.UNAVAILABLE, {"what": "queue database"}) from error
                else:
                    raise
        raise AssertionError("unreachable")

    def has_user_column(self, connection: Connection) -> bool:
        """True for an adopted table that also has ``sUserId``; looked up once."""
        if self._user_column is None:
            names = {column["name"] for column in inspect(connection).get_columns("ai_op_queue")}
            self._user_column = "sUserId" in names
        return self._user_column

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def _up_to_date() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        if not needs_upgrade(error):
            raise
        text = {
            "zh": "队列数据库的表结构不是本版本的，请先执行 opstage db upgrade",
            "en": "The queue's database does not have this release's tables: run opstage db upgrade",
        }
        raise Transient(ErrorCode.UNAVAILABLE, text=text) from error


def _was_established(error: SQLAlchemyError) -> bool:
    """True if a connection broke that had been there: its pool was renewed, and the next one may well work."""
    return isinstance(error, DBAPIError) and error.connection_invalidated
