"""INSERT that lets an existing row stand, without hiding any other error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from staging.storage.dberrors import DbFailure, classify_db_error


def insert_if_absent(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert ``values``; False if a row with that key exists (waits for a twin in flight to decide).

    PostgreSQL must not meet the error at all, its transaction would be unusable (RELIABILITY B13); the MySQL family
    loses only the statement, and INSERT IGNORE would swallow far more than duplicates.
    """
    if connection.dialect.name == "postgresql":
        return (
            connection.execute(postgresql.insert(table).values(values).on_conflict_do_nothing()).rowcount == 1
        )
    if connection.dialect.name == "sqlite":
        return connection.execute(sqlite.insert(table).values(values).on_conflict_do_nothing()).rowcount == 1
    try:
        connection.execute(insert(table).values(values))
    except IntegrityError as error:
        if classify_db_error(error) is DbFailure.UNIQUE:
            return False
        raise
    return True
