"""The journal as a feed for listeners: what happened since a cursor, without gap or duplicate (``domain.cursor``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, Table, and_, bindparam, or_, select

from staging.contracts.event import OperationEvent
from staging.contracts.status import Status, StatusCode
from staging.domain.cursor import OVERLAP, Cursor
from staging.domain.identity import Tenant
from staging.domain.operation import Told, event_payload
from staging.storage.dialect import db_now
from staging.storage.rows import base_select, to_operation
from staging.storage.tables import op_event, op_event_archive, op_queue, op_queue_archive

q, e = op_queue.c, op_event.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_CHUNK = 1000  # keys read at a time
PAGE = 500  # events told at a time


@dataclass(frozen=True, slots=True)
class Moved:
    """That an operation has an event; ``at`` is aware UTC by database time."""

    op_id: str
    seq: int
    at: datetime
    tenant: Tenant
    maker: str


@dataclass(frozen=True, slots=True)
class Audience:
    """Whose events: a user's own, or with ``user_id`` None the whole tenant's (operators)."""

    tenant: Tenant
    user_id: str | None

    def conditions(self) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = [
            q.sBrandsId == self.tenant.brands_id,
            q.sSubsidiaryId == self.tenant.subsidiary_id,
        ]
        return found if self.user_id is None else [*found, q.sMakePerson == self.user_id]


def start(connection: Connection, audience: Audience) -> Cursor:
    """A cursor at now: what is committed already counts as seen."""
    cursor = Cursor(horizon_now(connection))
    for moved in moved_since(connection, cursor.horizon, audience):
        cursor.advance(moved.op_id, moved.seq, moved.at)
    return cursor


def horizon_now(connection: Connection) -> datetime:
    """The time before which every event is visible by now."""
    now: datetime = connection.execute(select(db_now())).scalar_one()
    return now - OVERLAP


def since(connection: Connection, audience: Audience, cursor: Cursor) -> list[Told]:
    """Events after the cursor, about ``PAGE`` of them, in the order of their times, each operation's in the order of
    their seqs; ask again until nothing comes."""
    ids: dict[str, None] = {}
    last: Moved | None = None
    found = 0
    for moved in moved_since(connection, cursor.horizon, audience):
        if moved.seq > cursor.last_seen(moved.op_id):
            ids[moved.op_id] = None
            last = moved
            found += 1
            if found == PAGE:
                break
    told = of_operations(connection, audience, cursor, list(ids))
    if found < PAGE or last is None:
        return told
    return [t for t in told if t.event.at <= last.at]


def of_operations(
    connection: Connection, audience: Audience, cursor: Cursor, op_ids: Sequence[str]
) -> list[Told]:
    """Events after the cursor of those of ``op_ids`` that are the audience's, ordered as by ``since``."""
    if not op_ids:
        return []
    statement = _select().where(e.sOpId.in_(_IDS), e.tCreateDate >= cursor.horizon, *audience.conditions())
    rows = connection.execute(statement.order_by(e.sOpId, e.iSeq), {"ids": list(op_ids)})
    told: list[tuple[datetime, Told]] = []
    latest: dict[str, datetime] = {}
    for row in rows:
        if row.event_seq > cursor.last_seen(row.id):
            # Should a clock have been set back, an operation's own order still holds.
            latest[row.id] = max(row.event_at, latest.get(row.id, row.event_at))
            told.append((latest[row.id], _told(row)))
    return [one for _, one in sorted(told, key=lambda pair: pair[0])]


def of_operation(connection: Connection, op_id: str, after: int, *, archived: bool = False) -> list[Told]:
    """Events of one operation, in the queue or ``archived``, with a seq above ``after``, ascending."""
    events = op_event_archive if archived else op_event
    statement = _select(events, op_queue_archive if archived else op_queue)
    where = (events.c.sOpId == op_id, events.c.iSeq > after)
    return [_told(row) for row in connection.execute(statement.where(*where).order_by(events.c.iSeq))]


def moved_since(
    connection: Connection, horizon: datetime, audience: Audience | None = None
) -> Iterator[Moved]:
    """Keys of events from ``horizon`` on, by time, read as they are asked for; without an audience everybody's."""
    among = [] if audience is None else audience.conditions()
    columns = (e.sOpId, e.iSeq, e.tCreateDate, q.sBrandsId, q.sSubsidiaryId, q.sMakePerson)
    statement = (
        select(*columns)
        .select_from(op_event.join(op_queue, q.sId == e.sOpId))
        .where(*among)
        .order_by(e.tCreateDate, e.sOpId, e.iSeq)
        .limit(_CHUNK)
    )
    beyond: ColumnElement[bool] = e.tCreateDate >= horizon
    while True:
        rows = connection.execute(statement.where(beyond)).all()
        for row in rows:
            tenant = Tenant(row.sBrandsId or "", row.sSubsidiaryId or "")
            yield Moved(row.sOpId, row.iSeq, row.tCreateDate, tenant, row.sMakePerson or "")
        if len(rows) < _CHUNK:
            return
        at, op_id, seq = rows[-1].tCreateDate, rows[-1].sOpId, rows[-1].iSeq
        # The first condition is implied by the second; it is what an index on the time can use.
        beyond = and_(
            e.tCreateDate >= at,
            or_(
                e.tCreateDate > at,
                and_(e.tCreateDate == at, or_(e.sOpId > op_id, and_(e.sOpId == op_id, e.iSeq > seq))),
            ),
        )


def _select(events: Table = op_event, queue: Table = op_queue) -> Any:
    return (
        base_select(queue)
        .add_columns(
            events.c.iSeq.label("event_seq"),
            events.c.iStatusCode.label("event_code"),
            events.c.sStatus.label("event_status"),
            events.c.sMessage.label("event_message"),
            events.c.tCreateDate.label("event_at"),
        )
        .select_from(events.join(queue, queue.c.sId == events.c.sOpId))
    )


def _told(row: Row[Any]) -> Told:
    """The event as it was told then: the row's own outcome only where the event is the newest one."""
    operation = to_operation(row)
    payload = event_payload(operation)
    if row.event_seq != operation.seq:
        code = StatusCode.of(row.event_code)
        meaning = code.meaning(operation.locale) if code else row.event_status
        payload |= {
            "seq": row.event_seq,
            "status": Status(row.event_status),
            "code": row.event_code,
            "message": row.event_message or meaning,
            "result_bill_id": None,
            "link": None,
        }
    event = OperationEvent(**payload, at=row.event_at)
    return Told(operation.tenant, operation.maker, event)
