"""What a database exception means for us, whichever driver raised it. Codes: RELIABILITY B3, B8, B9, B11."""

from __future__ import annotations

import re
import sqlite3
from enum import Enum
from typing import Any

from sqlalchemy import exc as sa


class DbFailure(Enum):
    """``is_transient``: the whole transaction may run again. CONNECTION_LOST during COMMIT means: outcome unknown."""

    is_transient: bool

    def __new__(cls, word: str, is_transient: bool) -> DbFailure:
        member = object.__new__(cls)
        member._value_ = word
        member.is_transient = is_transient
        return member

    DEADLOCK = "deadlock", True
    SERIALIZATION = "serialization", True
    LOCK_TIMEOUT = "lock_timeout", True
    STATEMENT_TIMEOUT = "statement_timeout", True
    CONNECTION_LOST = "connection_lost", True
    BUSY = "busy", True  # SQLite's one write lock, or no connection free in our pool
    UNIQUE = "unique", False
    INTEGRITY = "integrity", False
    DATA = "data", False
    SCHEMA = "schema", False  # a table or column is not there
    OTHER = "other", False


F = DbFailure

_SQLSTATE = {
    "40P01": F.DEADLOCK,
    "40001": F.SERIALIZATION,
    "40003": F.CONNECTION_LOST,  # statement completion unknown
    "55P03": F.LOCK_TIMEOUT,
    "57014": F.STATEMENT_TIMEOUT,
    "25P03": F.CONNECTION_LOST,  # idle in transaction for too long: the server hung up
    "57P01": F.CONNECTION_LOST,
    "57P02": F.CONNECTION_LOST,
    "57P03": F.CONNECTION_LOST,
    "57P05": F.CONNECTION_LOST,
    "53300": F.CONNECTION_LOST,
    "23505": F.UNIQUE,
    "42P01": F.SCHEMA,
    "42703": F.SCHEMA,
}
_SQLSTATE_CLASS = {"08": F.CONNECTION_LOST, "23": F.INTEGRITY, "22": F.DATA}

_MYSQL = {
    1213: F.DEADLOCK,
    1020: F.SERIALIZATION,
    1412: F.SERIALIZATION,
    1205: F.LOCK_TIMEOUT,
    3572: F.LOCK_TIMEOUT,
    1969: F.STATEMENT_TIMEOUT,  # MariaDB max_statement_time
    3024: F.STATEMENT_TIMEOUT,  # MySQL max_execution_time
    1317: F.STATEMENT_TIMEOUT,
    **dict.fromkeys(
        (
            0,
            1040,
            1053,
            1077,
            1080,
            1152,
            1158,
            1159,
            1160,
            1161,
            1184,
            1927,
            2002,
            2003,
            2006,
            2013,
            2055,
            4031,
        ),
        F.CONNECTION_LOST,
    ),
    **dict.fromkeys((1062, 1169, 1586), F.UNIQUE),
    **dict.fromkeys((1054, 1146), F.SCHEMA),
    **dict.fromkeys((1048, 1216, 1217, 1364, 1451, 1452, 3819, 4025), F.INTEGRITY),
    **dict.fromkeys((1153, 1264, 1265, 1292, 1366, 1367, 1406, 1411, 1690, 3140, 3141), F.DATA),
}
_SQLITE = {
    sqlite3.SQLITE_BUSY: F.BUSY,
    sqlite3.SQLITE_LOCKED: F.BUSY,
    sqlite3.SQLITE_INTERRUPT: F.STATEMENT_TIMEOUT,
    sqlite3.SQLITE_CANTOPEN: F.CONNECTION_LOST,
    sqlite3.SQLITE_CONSTRAINT: F.INTEGRITY,
    sqlite3.SQLITE_MISMATCH: F.DATA,
    sqlite3.SQLITE_TOOBIG: F.DATA,
}
_SQLITE_SCHEMA = re.compile(r"^no such (table|column)|^table \w+ has no column named ")
_SQLITE_UNIQUE = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
}


_OURS = re.compile(r"\bai_(op|audit)_")
# Data too long for column 'sMemo' at row 1; CONSTRAINT `sal_order.jExtra` failed; NOT NULL constraint failed: t.sName
_REFUSED_BY = re.compile(r"(?:\b[Cc]olumn|CONSTRAINT) [`']((?:\w|\.)+)[`']|constraint failed: ((?:\w|\.)+)$")


def classify_db_error(error: BaseException) -> DbFailure:
    """Return what ``error`` (of SQLAlchemy, the driver, or a conversion on the way to it) means; OTHER if unknown."""
    if isinstance(error, sa.TimeoutError):
        return F.BUSY
    if isinstance(error, sa.StatementError) and error.orig is not None:
        if isinstance(error, sa.DBAPIError) and error.connection_invalidated:
            return F.CONNECTION_LOST
        return classify_db_error(error.orig)
    if isinstance(error, OverflowError | ValueError | TypeError):
        return F.DATA  # a value that could not even be bound
    if isinstance(error, ConnectionError | TimeoutError):
        return F.CONNECTION_LOST
    return _of_driver(error)


def refused_by(error: BaseException) -> str:
    """The column or constraint whose rule ``error`` tells of, "" where it names none. A name, never a value."""
    cause: Any = error.orig if isinstance(error, sa.StatementError) and error.orig is not None else error
    diag = getattr(cause, "diag", None)
    if diag is not None:
        return str(diag.column_name or diag.constraint_name or "")
    found = _REFUSED_BY.search(str(cause))
    return (found[1] or found[2]) if found else ""


def needs_upgrade(error: BaseException) -> bool:
    """True if a table or column of ours is not there: the database was not brought up to this release."""
    return (
        isinstance(error, sa.DBAPIError)
        and classify_db_error(error) is F.SCHEMA
        and _OURS.search(error.statement or "") is not None
    )


def is_db_error(error: BaseException) -> bool:
    """True if ``error`` came through SQLAlchemy, so that ``classify_db_error`` says what it means."""
    return isinstance(error, sa.SQLAlchemyError)


def _of_driver(error: Any) -> DbFailure:
    sqlite_code = getattr(error, "sqlite_errorcode", None)
    if isinstance(sqlite_code, int):
        if sqlite_code == sqlite3.SQLITE_ERROR and _SQLITE_SCHEMA.match(str(error)):
            return F.SCHEMA
        return F.UNIQUE if sqlite_code in _SQLITE_UNIQUE else _SQLITE.get(sqlite_code & 0xFF, F.OTHER)
    module, name = type(error).__module__.partition(".")[0], type(error).__name__
    if module == "psycopg":
        state = getattr(error, "sqlstate", None)
        if state:
            return _SQLSTATE.get(state) or _SQLSTATE_CLASS.get(state[:2], F.OTHER)
        # Without a SQLSTATE the server did not say it: the line broke, or the value could not be sent.
        return {"OperationalError": F.CONNECTION_LOST, "DataError": F.DATA}.get(name, F.OTHER)
    if module == "pymysql":
        number = error.args[0] if error.args else None
        if isinstance(number, int):
            return _MYSQL.get(number, F.OTHER)
        return F.CONNECTION_LOST if name == "InterfaceError" else F.OTHER
    return F.OTHER
