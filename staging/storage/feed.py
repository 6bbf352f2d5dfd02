"""The journal as a feed for listeners: what happened to a user's operations since a cursor, without gap or duplicate.

Events of one operation are numbered without gaps, but the journal has no number across operations, and commits do not
become visible in the order of their times. So a cursor is a horizon in time, safely older than any open
transaction, plus the last seq seen of each operation that moved after it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from staging.contracts.event import OperationEvent
from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.domain.operation import Told, event_payload
from staging.storage.dialect import db_now
from staging.storage.rows import base_select, to_operation
from staging.storage.tables import op_event, op_queue

q, e = op_queue.c, op_event.c
# Longer than any transaction of ours may stay open (statement, lock and idle limits end it before).
OVERLAP = timedelta(seconds=90)
_PAGE = 500


@dataclass(slots=True)
class Cursor:
    """``horizon``: all events before it have been seen. ``seen``: operation id → last seq seen, for those after it."""

    horizon: datetime
    seen: dict[str, int] = field(default_factory=dict)

    def dump(self) -> str:
        """Opaque text for ``Last-Event-ID``."""
        data = [self.horizon.timestamp(), self.seen]
        return base64.urlsafe_b64encode(json.dumps(data, separators=(",", ":")).encode()).decode()


def load_cursor(text: str) -> Cursor | None:
    """The cursor ``dump`` wrote, or None for anything else (a client may send what it likes)."""
    try:
        moment, seen = json.loads(base64.urlsafe_b64decode(text.encode()))
        horizon = datetime.fromtimestamp(float(moment), UTC)
        return Cursor(horizon, {str(k): int(v) for k, v in seen.items()})
    except (ValueError, TypeError, AttributeError, OverflowError, OSError):
        return None


def start(connection: Connection, tenant: Tenant, user_id: str | None) -> Cursor:
    """A cursor at now: what is committed already counts as seen."""
    now = connection.execute(select(db_now())).scalar_one()
    cursor = Cursor(now - OVERLAP)
    while page := since(connection, tenant, user_id, cursor):
        advance(cursor, page)
    return cursor


def since(connection: Connection, tenant: Tenant, user_id: str | None, cursor: Cursor) -> list[Told]:
    """Events after the cursor, by time and, within an operation, by seq; at most a page: ask again.

    ``user_id`` None: the whole tenant's (operators).
    """
    conditions: list[ColumnElement[bool]] = [
        q.sBrandsId == tenant.brands_id,
        q.sSubsidiaryId == tenant.subsidiary_id,
        e.tCreateDate >= cursor.horizon,
    ]
    if user_id is not None:
        conditions.append(q.sMakePerson == user_id)
    found: list[Told] = []
    for row in connection.execute(_select().where(*conditions).order_by(e.tCreateDate, e.sOpId, e.iSeq)):
        if row.event_seq > cursor.seen.get(row.id, 0):
            found.append(_told(row))
            if len(found) == _PAGE:
                break
    return found


def of_operation(connection: Connection, op_id: str, after: int) -> list[Told]:
    """Events of one operation with a seq above ``after``, ascending."""
    statement = _select().where(e.sOpId == op_id, e.iSeq > after).order_by(e.iSeq)
    return [_told(row) for row in connection.execute(statement)]


def advance(cursor: Cursor, told: Sequence[Told]) -> None:
    """Count ``told`` as seen, and move the horizon on where it has fallen far behind the newest event."""
    for item in told:
        cursor.seen[item.event.op_id] = max(item.event.seq, cursor.seen.get(item.event.op_id, 0))
    if told:
        cursor.horizon = max(cursor.horizon, told[-1].event.at - OVERLAP)


def _select() -> Any:
    return (
        base_select()
        .add_columns(
            e.iSeq.label("event_seq"),
            e.iStatusCode.label("event_code"),
            e.sStatus.label("event_status"),
            e.sMessage.label("event_message"),
            e.tCreateDate.label("event_at"),
        )
        .select_from(op_event.join(op_queue, q.sId == e.sOpId))
    )


def _told(row: Any) -> Told:
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
