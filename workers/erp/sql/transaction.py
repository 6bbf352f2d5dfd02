"""One transaction of the ERP database, and reads of it, with errors that callers understand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.exc import SQLAlchemyError

from staging.contracts.error import ErrorCode
from staging.domain.errors import Transient
from staging.storage.dberrors import classify_db_error
from staging.storage.engine import asking_connection, open_connection, read_connection
from workers.erp.sql.permissions import Grants, GrantsOfTransaction


@dataclass(slots=True)
class SqlTransaction:
    """``ports.ErpTransaction`` on an open connection. ``grants``: as this transaction sees them."""

    connection: Connection
    grants: Grants
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
def open_transaction(engine: Engine, grants: Grants) -> Iterator[SqlTransaction]:
    """BEGIN; ROLLBACK on leaving unless committed. Never retries. Database errors come out as they are."""
    with open_connection(engine) as connection:
        yield SqlTransaction(connection, GrantsOfTransaction(grants))


@contextmanager
def reading(engine: Engine, *, snapshot: bool = True) -> Iterator[Connection]:
    """A connection to read with: read-only, on one snapshot; without ``snapshot``, whatever each statement meets.

    Raises ``Transient`` (unavailable) if the database cannot answer now.
    """
    try:
        with read_connection(engine) if snapshot else asking_connection(engine) as connection:
            yield connection
    except SQLAlchemyError as error:
        if not classify_db_error(error).is_transient:
            raise
        raise Transient(ErrorCode.UNAVAILABLE, {"what": "ERP"}) from error
