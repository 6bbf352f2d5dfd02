"""Steps of a migration: each looks first, so that a migration that died half-way is simply run again.

Needed on the MySQL family, where every DDL statement commits by itself (RELIABILITY B12). PostgreSQL and SQLite roll
the whole migration back. ``Table`` and ``Index`` objects come from the version file: history states its own DDL.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Executable, Index, Table, inspect
from sqlalchemy.schema import CreateIndex, CreateTable

from migrations.errors import refuse
from migrations.failpoint import changed
from staging import failpoints
from staging.storage.dialect import is_mysql


def run(connection: Connection, statement: str | Executable) -> int:
    """Execute one statement that changes the database; returns its row count. Text goes to the driver as it is."""
    # exec_driver_sql: a colon or percent sign in a default is no parameter
    result = (
        connection.exec_driver_sql(statement) if isinstance(statement, str) else connection.execute(statement)
    )
    if is_mysql(connection.dialect):
        connection.commit()  # as DDL does there: each change is done when the next one starts
    changed()
    failpoints.reached("W14", "migration")
    return result.rowcount


def quoted(connection: Connection, name: str) -> str:
    """``name`` as an identifier of this database, always quoted."""
    return connection.dialect.identifier_preparer.quote_identifier(name)


def has_table(connection: Connection, name: str) -> bool:
    return name in inspect(connection).get_table_names()


def create_table(connection: Connection, table: Table, indexes: Iterable[Index] = ()) -> None:
    """Create ``table`` and ``indexes`` where missing. Refuses a table of that name with other columns."""
    if not has_table(connection, table.name):
        run(connection, CreateTable(table))
    else:
        present = {str(column["name"]) for column in inspect(connection).get_columns(table.name)}
        lacking = [column.name for column in table.columns if column.name not in present]
        if lacking:
            names = ", ".join(lacking)
            raise refuse(
                f"数据库中已有名为 {table.name} 的表，但缺少列：{names}。请先将其改名或移走，再重新升级。",
                f"There is a table {table.name} already, without the columns {names}. "
                "Rename it or move it away, then upgrade again.",
            )
    create_indexes(connection, table, indexes)


def create_indexes(connection: Connection, table: Table, indexes: Iterable[Index]) -> None:
    """Create those of ``indexes`` whose name the table does not have yet."""
    present = index_names(connection, table.name)
    for index in indexes:
        if index.name not in present:
            run(connection, CreateIndex(index))


def drop_table(connection: Connection, name: str) -> None:
    """Drop the table where it is there."""
    if has_table(connection, name):
        run(connection, f"DROP TABLE {quoted(connection, name)}")


def drop_index(connection: Connection, table: str, name: str) -> None:
    """Drop the index where it is there."""
    if name in index_names(connection, table):
        of_table = f" ON {quoted(connection, table)}" if is_mysql(connection.dialect) else ""
        run(connection, f"DROP INDEX {quoted(connection, name)}{of_table}")


def index_names(connection: Connection, table: str) -> set[str]:
    return {str(index["name"]) for index in inspect(connection).get_indexes(table)}
