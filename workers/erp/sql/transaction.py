"""One transaction of the ERP database, and reads of it, with errors that callers understand."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.exc import SQLAlchemyError

from staging.contracts.error import ErrorCode
from staging.domain.errors import Transient
from staging.storage.dberrors import classify_db_error
from staging.storage.engine import read_connection

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SqlTransaction:
    """``ports.ErpTransaction`` on an open connection."""

    connection: Connection
    _begun: RootTransaction = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.connection.begin()

    def commit(self) -> None:
        """COMMIT. Any exception leaves the outcome unknown; the connection is not used again then."""
        try:
            self._begun.commit()
        except BaseException:
            self.connection.invalidate()
            raise

    def rollback(self) -> None:
        self._begun.rollback()


@contextmanager
def open_transaction(engine: Engine) -> Iterator[SqlTransaction]:
    """BEGIN; ROLLBACK on leaving unless committed. Never retries. Database errors come out as they are."""
    with engine.connect() as connection:
        tx = SqlTransaction(connection)
        try:
            yield tx
        finally:
            _end(connection, tx)


def _end(connection: Connection, tx: SqlTransaction) -> None:
    """Undo what was not committed. Must not hide the exception that may be on its way."""
    if connection.invalidated or not connection.in_transaction():
        return
    try:
        tx.rollback()
    except SQLAlchemyError:
        # Interrupted in mid-statement, or the server is gone: closing the connection rolls back.
        log.warning("ROLLBACK failed; the connection is closed instead", exc_info=True)
        connection.invalidate()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A read-only connection on one snapshot. Raises ``Transient`` (unavailable) if the database cannot answer now."""
    try:
        with read_connection(engine) as connection:
            yield connection
    except SQLAlchemyError as error:
        if not classify_db_error(error).is_transient:
            raise
        raise Transient(ErrorCode.UNAVAILABLE, {"what": "ERP"}) from error
