"""The journal: one event per transition, written in the transition's own transaction, and read for listeners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    BindParameter,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy.sql.dml import Insert

from staging.contracts.event import OperationEvent
from staging.domain.identity import Actor, ActorKind
from staging.domain.lifecycle import Verb
from staging.domain.operation import Moved, Operation, Told, event_payload
from staging.storage.bulk import insert_rows
from staging.storage.dialect import db_now
from staging.storage.rows import LONG_FIELDS, base_select, to_operation
from staging.storage.tables import op_event, op_event_archive, op_queue

q, e = op_queue.c, op_event.c
_SYSTEM = ActorKind.SYSTEM.value
_IDS: BindParameter[str] = bindparam("ids", expanding=True)


def _from_row(row: Any, message: ColumnElement[Any], at: ColumnElement[Any]) -> dict[str, Any]:
    # The event copies seq, status and code from the row just written: the two cannot disagree.
    return {
        "sOpId": row.sId,
        "iSeq": row.iSeq,
        "sVerb": bindparam("verb", type_=e.sVerb.type),
        "sStatus": row.sStatus,
        "iStatusCode": row.iStatusCode,
        "iAttempt": func.coalesce(row.iAttempt, 0),
        "sMessage": message,
        "sActor": bindparam("actor", type_=e.sActor.type),
        "sActorKind": bindparam("kind", type_=e.sActorKind.type),
        "tCreateDate": at,
    }


_MESSAGE: BindParameter[str] = bindparam("message", type_=e.sMessage.type)
_OF_ROW = _from_row(q, _MESSAGE, db_now())
_RECORD = insert(op_event).from_select([*_OF_ROW], select(*_OF_ROW.values()).where(q.sId.in_(_IDS)))


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event as stored. ``at`` is aware UTC by database time."""

    op_id: str
    seq: int
    verb: str
    status: str
    code: int
    attempt: int
    message: str
    actor: str
    actor_kind: str
    at: datetime


def record(
    connection: Connection, ids: Sequence[str], verb: Verb, *, message: str = "", actor: Actor | None = None
) -> None:
    """Write the event of rows whose seq the caller has just raised in this transaction."""
    if ids:
        values = parameters(verb, message=message, actor=actor)
        connection.execute(_RECORD, values | {"ids": list(ids)})


def parameters(verb: Verb, *, message: str = "", actor: Actor | None = None) -> dict[str, Any]:
    """Of ``record``'s statement, and of what ``recording`` gives."""
    return {
        "verb": verb.value,
        "message": message or None,
        "actor": actor.user_id if actor else "",
        "kind": actor.kind.value if actor else _SYSTEM,
    }


def recording(moved: CTE, message: ColumnElement[Any] = _MESSAGE) -> Insert:
    """``record`` of the rows that the same statement has ``moved``, at their ``now``; they may give the ``message``."""
    event = _from_row(moved.c, message, moved.c.now)
    return insert(op_event).from_select([*event], select(*event.values()))


def record_as_read(
    connection: Connection,
    moved: Sequence[Operation | Moved],
    verb: Verb,
    at: datetime,
    *,
    messages: Sequence[str] = (),
    actor: Actor | None = None,
) -> list[Told]:
    """``record`` without reading the rows once more: ``moved`` are as this transaction has just written them. ``at``:
    database time; ``messages``: one each, or none. Gives what subscribers are to be told.
    """
    rows = [
        {
            "sOpId": o.id,
            "iSeq": o.seq,
            "sVerb": verb.value,
            "sStatus": o.status,
            "iStatusCode": o.code,
            "iAttempt": o.attempt,
            "sMessage": message or None,
            "sActor": actor.user_id if actor else "",
            "sActorKind": actor.kind.value if actor else _SYSTEM,
            "tCreateDate": at,
        }
        for o, message in zip(moved, messages or [""] * len(moved), strict=True)
    ]
    if rows:
        insert_rows(connection, op_event, rows)
    return [told(o, at) for o in moved]


def events(
    connection: Connection, op_id: str, after: int = 0, *, archived: bool = False
) -> list[JournalEntry]:
    """Events of one operation, in the queue or ``archived``, with a seq above ``after``, ascending."""
    table = op_event_archive if archived else op_event
    statement = select(table).where(table.c.sOpId == op_id, table.c.iSeq > after).order_by(table.c.iSeq)
    return [
        JournalEntry(
            r.sOpId,
            r.iSeq,
            r.sVerb,
            r.sStatus,
            r.iStatusCode,
            r.iAttempt,
            r.sMessage or "",
            r.sActor,
            r.sActorKind,
            r.tCreateDate,
        )
        for r in connection.execute(statement)
    ]


_NEWEST = (
    base_select(without=LONG_FIELDS)
    .add_columns(e.tCreateDate.label("event_at"))
    .select_from(op_queue.join(op_event, and_(e.sOpId == q.sId, e.iSeq == q.iSeq)))
    .where(q.sId.in_(_IDS))
)


def newest(connection: Connection, ids: Sequence[str]) -> list[Told]:
    """The newest event of each of ``ids`` as subscribers get it, in the order of ``ids``."""
    found: dict[str, Told] = {}
    for row in connection.execute(_NEWEST, {"ids": list(ids)}):
        operation = to_operation(row)
        found[operation.id] = told(operation, row.event_at)
    return [found[i] for i in dict.fromkeys(ids) if i in found]


def told(operation: Operation | Moved, at: datetime) -> Told:
    """What subscribers get of the operation's newest event, written at ``at``."""
    return Told(operation.tenant, operation.maker, OperationEvent(**event_payload(operation), at=at))
