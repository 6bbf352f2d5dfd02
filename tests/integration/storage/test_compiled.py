"""A compiled statement: it does what SQLAlchemy's execution of it does, and fails as that does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, bindparam, insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError

from staging.storage.compiled import compiled
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.engine import open_connection
from staging.storage.tables import metadata, op_event

e = op_event.c
_INSERT = insert(op_event).values({c.name: bindparam(f"new_{c.name}", type_=c.type) for c in e})
_INSERT_AND_SAY = _INSERT.returning(e.sOpId, e.iSeq, e.tCreateDate, e.sMessage)
_BY_ID = select(e.sOpId, e.tCreateDate.label("at")).where(e.sOpId == bindparam("id"), e.iSeq == 1)
_ROW: dict[str, Any] = {
    "new_sOpId": "op-1",
    "new_iSeq": 1,
    "new_sVerb": "submit",
    "new_sStatus": "pending",
    "new_iStatusCode": 100,
    "new_iAttempt": 0,
    "new_sMessage": None,
    "new_sActor": "u-lin",
    "new_sActorKind": "person",
    "new_tCreateDate": datetime(2026, 11, 30, 8, 0, 0, 5, UTC),
}


pytestmark = pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)


@pytest.fixture
def tables(engine: Engine) -> Engine:
    metadata.create_all(engine)
    return engine


def test_rows_are_those_of_an_ordinary_execution(tables: Engine) -> None:
    with open_connection(tables) as connection:
        said = compiled(_INSERT_AND_SAY, connection.dialect).run(connection, _ROW)
        assert compiled(_INSERT, connection.dialect).run(connection, _ROW | {"new_iSeq": 2}) is None
        found = compiled(_BY_ID, connection.dialect).run(connection, {"id": "op-1"})
        assert tuple(found) == tuple(connection.execute(_BY_ID, {"id": "op-1"}).one())
        assert (said.sOpId, said.iSeq, said.tCreateDate, said.sMessage) == (
            "op-1",
            1,
            _ROW["new_tCreateDate"],
            None,
        )
        assert found.at.tzinfo is UTC
        assert compiled(_BY_ID, connection.dialect).run(connection, {"id": "op-2"}) is None


def test_it_is_part_of_the_transaction(tables: Engine) -> None:
    with open_connection(tables) as connection:
        compiled(_INSERT, connection.dialect).run(connection, _ROW)
        connection.rollback()
        assert connection.execute(_BY_ID, {"id": "op-1"}).first() is None
        compiled(_INSERT, connection.dialect).run(connection, _ROW)
        connection.commit()
    with open_connection(tables) as connection:
        assert connection.execute(_BY_ID, {"id": "op-1"}).first() is not None


def test_errors_are_sqlalchemys(tables: Engine) -> None:
    with open_connection(tables) as connection:
        statement = compiled(_INSERT, connection.dialect)
        statement.run(connection, _ROW)
        with pytest.raises(IntegrityError) as taken:
            statement.run(connection, _ROW)
        assert classify_db_error(taken.value) is DbFailure.UNIQUE
        connection.rollback()
        with pytest.raises(StatementError) as naive:
            statement.run(connection, _ROW | {"new_tCreateDate": datetime(2026, 11, 30)})  # noqa: DTZ001
        assert classify_db_error(naive.value) is DbFailure.DATA


def test_a_lost_connection_renews_the_pool(tables: Engine) -> None:
    with tables.connect() as killer, tables.connect() as one, tables.connect() as other:
        pids = [c.execute(text("SELECT pg_backend_pid()")).scalar_one() for c in (one, other)]
        other.close()  # it waits in the pool, and dies there
        for pid in pids:
            killer.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        with pytest.raises(DBAPIError) as lost:
            compiled(_BY_ID, one.dialect).run(one, {"id": "op-1"})
    assert lost.value.connection_invalidated
    assert classify_db_error(lost.value) is DbFailure.CONNECTION_LOST
    with tables.connect() as one, tables.connect() as other:
        for connection in (one, other):
            assert compiled(_BY_ID, connection.dialect).run(connection, {"id": "op-1"}) is None
