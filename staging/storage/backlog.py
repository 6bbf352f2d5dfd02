"""How the queue as a whole is doing: how many rows under each code, and how long the oldest of them wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, literal_column, select
from sqlalchemy.exc import SQLAlchemyError

from staging.contracts.status import StatusCode
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.dialect import db_now
from staging.storage.due import IS_DUE
from staging.storage.engine import make_engine, read_connection
from staging.storage.rows import IS_PENDING
from staging.storage.tables import op_dependency, op_event, op_queue

q, e = op_queue.c, op_event.c


@dataclass(frozen=True, slots=True)
class CodeCount:
    """``rows`` under a status and code; ``code`` None in rows of older programs."""

    status: str
    code: int | None
    rows: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Of all tenants; ages in seconds by database time, None where there is no such row.

    ``oldest_due_s``: how long the oldest row a worker could claim has been waiting. ``unknown``: rows at 102, the first
    for ``oldest_unknown_s``. ``lapsed``: rows at 101 whose lease is over, the first for ``oldest_lapsed_s``.
    """

    oldest_due_s: float | None
    unknown: int
    oldest_unknown_s: float | None
    lapsed: int
    oldest_lapsed_s: float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """``counts`` None: too many rows to count in time.

    ``uncoded``: rows 'pending' without a code, which nothing ever moves. ``unswept_s``: for how many seconds the oldest
    of the rows that only the sweeper moves on (a lapsed lease, an expiry or a planned time that is over) waits for it.
    """

    counts: list[CodeCount] | None
    backlog: Backlog
    uncoded: int
    unswept_s: float | None


_SINCE = case((q.tNotBefore > q.tCreateDate, q.tNotBefore), else_=q.tCreateDate)
_DUE = select(func.min(_SINCE).label("since"), db_now().label("now")).where(IS_DUE)
# Codes are literal so that partial indexes match (tables.py).
_UNKNOWN = (
    select(func.count().label("rows"), func.min(e.tCreateDate).label("since"), db_now().label("now"))
    .select_from(op_queue)
    .outerjoin(op_event, and_(e.sOpId == q.sId, e.iSeq == q.iSeq))
    .where(q.iStatusCode == literal_column(str(int(StatusCode.UNKNOWN))))
)
_LAPSED = select(
    func.count().label("rows"), func.min(q.tLeaseUntil).label("since"), db_now().label("now")
).where(q.iStatusCode == literal_column(str(int(StatusCode.RUNNING))), q.tLeaseUntil <= db_now())


_UNCODED = select(func.count()).select_from(op_queue).where(IS_PENDING, q.iStatusCode.is_(None))


def _code(code: StatusCode) -> ColumnElement[int]:
    return literal_column(str(int(code)))


_HELD = [_code(StatusCode.RUNNING), _code(StatusCode.UNKNOWN)]
_UNSWEPT = (
    select(func.min(q.tLeaseUntil).label("since"), db_now().label("now")).where(
        q.iStatusCode.in_(_HELD), q.tLeaseUntil <= db_now()
    ),
    select(func.min(q.tExpireAt).label("since"), db_now().label("now")).where(
        IS_PENDING,
        q.tExpireAt <= db_now(),
        q.iStatusCode.not_in(_HELD),
    ),
    select(func.min(q.tNotBefore).label("since"), db_now().label("now")).where(
        q.iStatusCode == _code(StatusCode.WAITING_OTHER),
        IS_PENDING,
        q.tNotBefore <= db_now(),
        ~exists().where(op_dependency.c.sOpId == q.sId),
    ),
)


def uncoded(connection: Connection) -> int:
    """Rows 'pending' whose code is NULL."""
    return int(connection.execute(_UNCODED).scalar_one())


def unswept_s(connection: Connection) -> float | None:
    """Seconds since when the sweeper should have moved a row on; None where it has nothing to do."""
    ages = [_age_s(row.since, row.now) for row in (connection.execute(one).one() for one in _UNSWEPT)]
    return max((age for age in ages if age is not None), default=None)


def counts(connection: Connection) -> list[CodeCount]:
    """Rows by status and code, ascending. Reads the whole table: on a very large one the statement timeout ends it."""
    statement = select(q.sStatus, q.iStatusCode, func.count()).group_by(q.sStatus, q.iStatusCode)
    found = [CodeCount(str(status), code, int(rows)) for status, code, rows in connection.execute(statement)]
    return sorted(found, key=lambda one: (one.code is None, one.code or 0, one.status))


def pending(connection: Connection) -> dict[int, int]:
    """Pending code → number of rows, all pending codes present. Cheap however long the history is."""
    statement = select(q.iStatusCode, func.count()).where(IS_PENDING).group_by(q.iStatusCode)
    found = {int(code): 0 for code in StatusCode if not code.is_terminal}
    return found | {int(code): int(rows) for code, rows in connection.execute(statement) if code is not None}


def answers(connection: Connection) -> bool:
    """One round trip: True, or the database's exception."""
    return bool(connection.execute(select(1)).scalar_one() == 1)


def backlog(connection: Connection) -> Backlog:
    """The ages that say whether rows move on."""
    due = connection.execute(_DUE).one()
    unknown = connection.execute(_UNKNOWN).one()
    lapsed = connection.execute(_LAPSED).one()
    return Backlog(
        oldest_due_s=_age_s(due.since, due.now),
        unknown=int(unknown.rows),
        oldest_unknown_s=_age_s(unknown.since, unknown.now),
        lapsed=int(lapsed.rows),
        oldest_lapsed_s=_age_s(lapsed.since, lapsed.now),
    )


def _age_s(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds())


def look_at_rows(url: str, statement_timeout_s: float = 2.0) -> Rows:
    """Connect, read both, hang up. Raises what the driver raised."""
    engine = make_engine(url, pool_size=1, statement_timeout_s=statement_timeout_s, connect_timeout_s=2.0)
    try:
        with read_connection(engine) as connection:
            ages = backlog(connection)
            found = (uncoded(connection), unswept_s(connection))
        try:
            with read_connection(engine) as connection:
                return Rows(counts(connection), ages, *found)
        except SQLAlchemyError as error:
            if classify_db_error(error) is not DbFailure.STATEMENT_TIMEOUT:
                raise
            return Rows(None, ages, *found)
    finally:
        engine.dispose()
