"""What a worker does with rows: claims them under a fencing token, renews the lease, and writes how they ended.

Compare-and-set like every move (``operations``), many rows to a statement. PostgreSQL does each step in one statement;
the others say the same in a few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Row,
    String,
    and_,
    any_,
    bindparam,
    case,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.sql.dml import Update
from sqlalchemy.sql.selectable import Select

from staging.contracts.status import Status, StatusCode
from staging.domain.lifecycle import Verb, transition
from staging.domain.operation import Moved, Operation, Told
from staging.storage import audit, journal
from staging.storage.bulk import as_given, given_rows, kept
from staging.storage.bulk_mariadb import execute_given, takes_json_table, update_given
from staging.storage.compiled import compiled
from staging.storage.dialect import db_now, db_now_plus, one_or_many
from staging.storage.due import IS_DUE_BY_KEY
from staging.storage.rows import base_select, code_by_key, status_by_key, to_operation
from staging.storage.tables import op_queue

q = op_queue.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_UNREAD = {"preview_json"}  # long, and for persons only

# --- claiming ------------------------------------------------------------------------------------------------------

_CLAIM_VALUES = {
    "iStatusCode": int(StatusCode.RUNNING),
    "iAttempt": func.coalesce(q.iAttempt, 0) + 1,
    "sLeaseToken": bindparam("token"),
    "tLeaseUntil": db_now_plus(bindparam("lease_s")),
    "iSeq": q.iSeq + 1,
}
# Whoever was claimed before may have killed its worker: it runs alone, so that it cannot burn its neighbours' attempts.
_CLAIMABLE = and_(IS_DUE_BY_KEY, q.iSeq > 0, or_(func.coalesce(q.iAttempt, 0) == 0, bindparam("single") == 1))
_CLAIM = update(op_queue).where(q.sId.in_(_IDS), _CLAIMABLE).values(_CLAIM_VALUES)


def _lock_claimable(among: ColumnElement[bool]) -> Select[Any]:
    return select(q.sId).where(among, _CLAIMABLE).order_by(q.sId).with_for_update(skip_locked=True)


_LOCK_CLAIMABLE = _lock_claimable(q.sId.in_(_IDS))
_CLAIMED = (
    base_select(without=_UNREAD)
    .add_columns(db_now().label("now"))
    .where(q.sId.in_(_IDS), q.sLeaseToken == bindparam("token"))
)


def _claim_at_once(among: ColumnElement[bool]) -> Select[Any]:
    """Lock, move, journal and read in one statement. The UPDATE states the guard again: PostgreSQL puts it to the
    newest version of a row that changed since the statement began."""
    locked = _lock_claimable(among).cte("locked")
    moved = update(op_queue).where(q.sId == locked.c.sId, _CLAIMABLE).values(_CLAIM_VALUES)
    claimed = moved.returning(*op_queue.columns, db_now().label("now")).cte("claimed")
    noted = journal.recording(claimed).cte("noted")
    return base_select(claimed, without=_UNREAD).add_columns(claimed.c.now).add_cte(noted)


_CLAIM_AT_ONCE = _claim_at_once(q.sId == any_(bindparam("ids", type_=ARRAY(String))))
# A list of one PostgreSQL would plan anew each time, which takes twice as long as the claim.
_CLAIM_ONE_AT_ONCE = _claim_at_once(q.sId == bindparam("id", type_=q.sId.type))


def claim(
    connection: Connection, ids: Sequence[str], token: str, lease_s: float
) -> tuple[list[Operation], list[Told]]:
    """Claim what is due among ``ids`` under a fresh fencing ``token``: 100 → 101, attempt + 1, lease by database time.

    Rows locked by a competitor are skipped where the engine can (SKIP LOCKED first, RELIABILITY B4-B6: the UPDATE then
    names exactly the locked ids). Returns the claimed operations in the order of ``ids``, without their preview, and
    what is to be told.
    """
    transition(Verb.CLAIM, StatusCode.SUBMITTED, StatusCode.RUNNING)
    if not ids:
        return [], []
    wanted = {"ids": sorted(set(ids)), "token": token, "lease_s": lease_s, "single": int(len(ids) == 1)}
    at_once = connection.dialect.name == "postgresql"
    rows = _claimed_at_once(connection, wanted) if at_once else _claimed(connection, wanted)
    if not rows:
        return [], []
    found = {row.id: to_operation(row) for row in rows}
    claimed = [found[i] for i in dict.fromkeys(ids) if i in found]
    at: datetime = rows[0].now
    if not at_once:
        journal.record_as_read(connection, claimed, Verb.CLAIM, at)
    return claimed, [journal.told(o, at) for o in claimed]


def _claimed_at_once(connection: Connection, wanted: Mapping[str, Any]) -> Sequence[Row[Any]]:
    given = {**wanted, **journal.parameters(Verb.CLAIM)}
    if len(ids := given.pop("ids")) > 1:
        return connection.execute(_CLAIM_AT_ONCE, given | {"ids": ids}).all()
    row = compiled(_CLAIM_ONE_AT_ONCE, connection.dialect).run(connection, given | {"id": ids[0]})
    return [row] if row else []


def _claimed(connection: Connection, wanted: Mapping[str, Any]) -> Sequence[Row[Any]]:
    if connection.dialect.name != "sqlite":
        locked = [row.sId for row in connection.execute(_LOCK_CLAIMABLE, wanted)]
        wanted = {**wanted, "ids": locked}
    if not wanted["ids"] or not connection.execute(_CLAIM, wanted).rowcount:
        return []
    return connection.execute(_CLAIMED, wanted).all()


# --- ending --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class End:
    """A running operation's end: ``code``, and the values of the columns that say how it went (``tExecutedDate`` is
    set by the statement)."""

    operation: Operation
    code: StatusCode
    columns: Mapping[str, Any]

    @property
    def said(self) -> str:
        """The row's message, "" where its code says all."""
        column = q.sResultMsg if self.code.status is Status.SUCCESS else q.sErrorMsg
        return self.columns[column.name] or ""

    @property
    def moved(self) -> Moved:
        """What ``finish`` has written, for those who listen."""
        held = self.operation
        return Moved(
            held.id,
            held.tenant,
            held.maker,
            held.form_id,
            held.conversation_id,
            held.attempt,
            seq=held.seq + 1,
            status=self.code.status.value,
            code=int(self.code),
            message=self.said or self.code.meaning(held.locale),
            result_bill_id=self.columns[q.sResultBillId.name],
        )

    def row(self) -> dict[str, Any]:
        """What ``finish`` compares and what it sets, by column."""
        held = self.operation
        compared = {"sId": held.id, "sLeaseToken": held.lease_token, "iSeq": held.seq}
        said = {"sStatus": self.code.status.value, "iStatusCode": int(self.code)}
        return compared | said | {column.name: self.columns[column.name] for column in _SAID[2:]}


@dataclass(frozen=True, slots=True)
class Finished:
    """``all_held`` False: somebody holds one of the rows no more, and the transaction is to be rolled back.
    ``noted_at``: database time of the events, None where they are still to be written. ``head``: that of the tenant's
    audit chain where it was moved on by the number of ends, for ``audit.append_to``."""

    all_held: bool
    noted_at: datetime | None = None
    head: audit.Head | None = None


# The token alone would do; with the seq, what ``End.moved`` says is what is written.
_COMPARED = (q.sId, q.sLeaseToken, q.iSeq)
_SAID = (q.sStatus, q.iStatusCode, q.sResultBillId, q.sResultMsg, q.sErrorMsg, q.sErrorCode, q.jErrorDetail)


_HELD = (status_by_key(Status.PENDING), code_by_key(StatusCode.RUNNING))
_OWN: dict[Any, Any] = {
    q.iSeq: q.iSeq + 1,
    q.sLeaseToken: None,
    q.tLeaseUntil: None,
    q.tExecutedDate: db_now(),
}


def _finish(value: Callable[[Column[Any]], ColumnElement[Any]]) -> Update:
    compared = [column == value(column) for column in _COMPARED]
    return update(op_queue).where(*compared, *_HELD).values({c: value(c) for c in _SAID} | _OWN)


_FINISH = _finish(lambda column: bindparam(f"to_{column.name}", type_=column.type))
_FINISH_GIVEN = update_given(op_queue, _COMPARED, _SAID, _HELD, _OWN)


def _finish_at_once() -> Select[Any, Any]:
    """Move and journal any number of rows in one statement, and if they are ``count`` the head of the audit chain;
    gives how many, and when."""
    given = given_rows(op_queue, [c.name for c in (*_COMPARED, *_SAID)])
    columns = (q.sId, q.iSeq, q.sStatus, q.iStatusCode, q.iAttempt, q.sResultMsg, q.sErrorMsg)
    moved = _finish(lambda column: kept(given, column)).returning(*columns, db_now().label("now"))
    ended = moved.cte("ended")
    said = case((ended.c.sStatus == Status.SUCCESS.value, ended.c.sResultMsg), else_=ended.c.sErrorMsg)
    noted = journal.recording(ended, func.nullif(said, "")).cte("noted")
    total = (
        select(func.count().label("moved"), func.min(ended.c.now).label("now"))
        .select_from(ended)
        .cte("total")
    )
    # From ``total``: whoever waits for a row holds no chain yet.
    head, known = audit.moving_on(select(total.c.moved).scalar_subquery() == bindparam("count"))
    return (
        select(total.c.moved, total.c.now, *known).select_from(total.outerjoin(head, true())).add_cte(noted)
    )


_FINISH_AT_ONCE = _finish_at_once()


def finish(connection: Connection, ends: Sequence[End]) -> Finished:
    """Compare-and-set all of ``ends``, of one tenant, from 101, each under its operation's fencing token. Where the
    events could not be written with it, the caller has ``record_ends`` do it in the same transaction."""
    for end in ends:
        transition(Verb.FINISH, StatusCode.RUNNING, end.code)
    rows = [end.row() for end in ends]
    if connection.dialect.name == "postgresql":
        of_chain = {"chain": audit.chain_of(ends[0].operation.tenant), "count": len(ends)}
        given = as_given(rows) | journal.parameters(Verb.FINISH) | of_chain
        done = compiled(_FINISH_AT_ONCE, connection.dialect).run(connection, given)
        return Finished(done.moved == len(ends), done.now, audit.head_of(done))
    if takes_json_table(connection, rows):
        return Finished(execute_given(connection, _FINISH_GIVEN, rows) == len(ends))
    bound = [{f"to_{name}": value for name, value in row.items()} for row in rows]
    return Finished(connection.execute(_FINISH, one_or_many(bound)).rowcount == len(ends))


def record_ends(connection: Connection, ends: Sequence[End], finished: Finished, at: datetime) -> list[Told]:
    """The events of what ``finish`` has moved, unless they are written, at ``at`` (database time); what is to be told
    of them."""
    moved = [end.moved for end in ends]
    if finished.noted_at is not None:
        return [journal.told(m, finished.noted_at) for m in moved]
    return journal.record_as_read(connection, moved, Verb.FINISH, at, messages=[end.said for end in ends])


# --- the lease -----------------------------------------------------------------------------------------------------

_RENEW = (
    update(op_queue)
    .where(q.sId.in_(_IDS), q.sLeaseToken == bindparam("token"), code_by_key(StatusCode.RUNNING))
    .values(tLeaseUntil=db_now_plus(bindparam("lease_s")))
)


def renew(connection: Connection, ids: Sequence[str], token: str, lease_s: float) -> int:
    """Extend the lease of rows still held under ``token``; returns how many still are."""
    return connection.execute(_RENEW, {"ids": list(ids), "token": token, "lease_s": lease_s}).rowcount


_IS_HELD = select(q.sId).where(q.sId == bindparam("id"), q.sLeaseToken == bindparam("token"))


def is_held(connection: Connection, op_id: str, token: str) -> bool:
    """True while the row is held under ``token``: nobody has taken the lease over."""
    return connection.execute(_IS_HELD, {"id": op_id, "token": token}).first() is not None
