"""A fixed statement compiled once and run on the driver's own cursor: what SQLAlchemy does around every execution costs
more than twice what psycopg needs to run it. For the few statements that each confirm runs, on PostgreSQL."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import Connection, Dialect, Select
from sqlalchemy.sql.dml import UpdateBase

Statement: TypeAlias = Select[Any] | UpdateBase


class Compiled:
    """``statement`` has no expanding parameters (``IN``)."""

    def __init__(self, statement: Statement, dialect: Dialect) -> None:
        made: Any = statement.compile(dialect=dialect)
        names: Mapping[Any, str] = made.bind_names
        self._sql = str(made)
        self._fixed = {name: parameter.value for parameter, name in names.items()}
        binds = {n: p.type.dialect_impl(dialect).bind_processor(dialect) for p, n in names.items()}
        self._binds = {name: convert for name, convert in binds.items() if convert}
        columns = list(statement.exported_columns)
        results = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        self._results = [(position, convert) for position, convert in enumerate(results) if convert]
        self._row = _named([column.name for column in columns])

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run it with the parameters ``values`` in ``connection``'s transaction; the first row by names, None for none.

        Errors are those of ``connection.execute``.
        """
        if not connection.in_transaction():
            connection.begin()
        cursor: Any = None
        try:
            given = {**self._fixed, **values}
            for name, convert in self._binds.items():
                given[name] = convert(given[name])
            cursor = connection.connection.cursor()
            cursor.execute(self._sql, given)
            found = cursor.fetchone() if cursor.description else None
            cursor.close()
        except BaseException as error:  # noqa: BLE001 - it always raises
            connection._handle_dbapi_exception(error, self._sql, dict(values), cursor, None)
        if found is None:
            return None
        row = list(found)
        for position, convert in self._results:
            row[position] = convert(row[position])
        return self._row(*row)


def _named(names: Sequence[str]) -> Any:
    return namedtuple("Found", names)


@lru_cache(maxsize=64)
def compiled(statement: Statement, dialect: Dialect) -> Compiled:
    """``statement``, one that lives as long as the process, for the ``dialect`` of an engine."""
    return Compiled(statement, dialect)
