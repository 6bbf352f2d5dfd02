"""Operations that wait for others (105): which of them may go on now."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, func, literal_column, or_, select

from staging.contracts.status import Status, StatusCode
from staging.domain.operation import Operation
from staging.storage.dialect import db_now
from staging.storage.rows import base_select, to_operation
from staging.storage.tables import op_dependency, op_queue, op_queue_archive

q = op_queue.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_OTHER = op_queue.alias()
_OLD = op_queue_archive.alias()  # what a confirm named may be archived by the time it is looked at
_LINKED = op_dependency.outerjoin(_OTHER, _OTHER.c.sId == op_dependency.c.sDependsOnId).outerjoin(
    _OLD, _OLD.c.sId == op_dependency.c.sDependsOnId
)
_STATUS = func.coalesce(_OTHER.c.sStatus, _OLD.c.sStatus, "")
_DEPENDENCIES = (
    select(op_dependency.c.sOpId, _STATUS.label("status"))
    .select_from(_LINKED)
    .where(op_dependency.c.sOpId.in_(_IDS))
)
_OF_THIS: Select[Any] = (
    select(literal_column("1")).select_from(_LINKED).where(op_dependency.c.sOpId == q.sId).correlate(op_queue)
)
# Asked in SQL: however many wait for something slow, those that may go on are found. A failure waits for no other.
_IS_DECIDED = or_(
    ~_OF_THIS.where(_OTHER.c.sStatus == Status.PENDING.value).exists(),
    _OF_THIS.where(_STATUS.not_in([Status.PENDING.value, Status.SUCCESS.value])).exists(),
)
_WAITING = (
    base_select()
    .where(
        # A literal, so that the partial index matches (tables.py).
        q.iStatusCode == literal_column(str(int(StatusCode.WAITING_OTHER))),
        q.sStatus == Status.PENDING.value,
        or_(q.tNotBefore.is_(None), q.tNotBefore <= db_now()),
        _IS_DECIDED,
    )
    .order_by(q.tCreateDate, q.sId)
    .limit(bindparam("limit"))
)


def waiting(connection: Connection, limit: int) -> list[tuple[Operation, list[str]]]:
    """Rows at 105 that may go on or have to fail: their time has come, and all they depend on succeeded or one failed.

    With the status words of what they depend on (missing ones as "").
    """
    operations = [to_operation(row) for row in connection.execute(_WAITING, {"limit": limit})]
    if not operations:
        return []
    links = connection.execute(_DEPENDENCIES, {"ids": [o.id for o in operations]})
    statuses: dict[str, list[str]] = {}
    for row in links:
        statuses.setdefault(row.sOpId, []).append(row.status)
    return [(o, statuses.get(o.id, [])) for o in operations]
