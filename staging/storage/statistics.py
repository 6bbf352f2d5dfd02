"""Numbers for operators, from the partial indexes: cheap however long the history is."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from staging.contracts.status import Status, StatusCode
from staging.storage.dialect import db_now
from staging.storage.tables import op_queue

q = op_queue.c


def pending_by_code(connection: Connection) -> dict[int, int]:
    """Pending code → number of operations; every pending code is present."""
    rows = connection.execute(
        select(q.iStatusCode, func.count()).where(q.sStatus == Status.PENDING.value).group_by(q.iStatusCode)
    )
    counts = {int(code): 0 for code in StatusCode if not code.is_terminal}
    return counts | {int(code): count for code, count in rows if code is not None}


def oldest_due_s(connection: Connection) -> float:
    """Seconds since the oldest claimable row was created, by database time; 0 where nothing is due."""
    due = (q.iStatusCode == int(StatusCode.SUBMITTED)) & (q.sStatus == Status.PENDING.value)
    later = q.tNotBefore.is_not(None) & (q.tNotBefore > db_now())
    clocks = select(func.min(q.tCreateDate).label("oldest"), db_now().label("now")).where(due, ~later)
    row = connection.execute(clocks).one()
    if row.oldest is None:
        return 0.0
    return max(0.0, float((row.now - row.oldest).total_seconds()))


def answers(connection: Connection) -> bool:
    """One round trip: True, or the database's exception."""
    return bool(connection.execute(select(1)).scalar_one() == 1)
