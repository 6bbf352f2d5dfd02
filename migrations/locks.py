"""One migration at a time in one database, whatever tree, whichever process.

SQLite needs nothing here: the transaction begins with ``BEGIN IMMEDIATE``, and the second process waits for the first.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from migrations.errors import MigrationFailed, Note
from staging.storage.dialect import is_mysql

_POSTGRES_KEY = 0x6F70_7374_6D69_6772  # "opstmigr"
BUSY = Note(
    "另一个进程正在升级此数据库，或有会话长时间锁住了相关的表。请稍后重试。",
    "Another process is migrating this database, or a session holds a lock on its tables. Try again later.",
)


def lock_migrations(connection: Connection, wait_s: float) -> None:
    """Take the database's migration lock; waits ``wait_s`` seconds at most, then raises.

    It ends with the transaction on PostgreSQL (so that a connection pooler in between cannot lose it) and with the
    connection on the MySQL family, where a transaction ends with every DDL statement.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_KEY})
    elif is_mysql(connection.dialect):
        # one name per database: these locks belong to the whole server
        statement = text("SELECT GET_LOCK(CONCAT('opstage_migrations_', MD5(DATABASE())), :wait)")
        if connection.execute(statement, {"wait": wait_s}).scalar() != 1:
            raise MigrationFailed([BUSY])
