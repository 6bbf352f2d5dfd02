"""All SQL that reads or moves rows of ``ai_op_queue``. Every change of code is one compare-and-set UPDATE plus
its event in the caller's transaction; the row count decides who won. Statements are built once; database time
throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Actor, Tenant
from staging.domain.intake import dump_json
from staging.domain.lifecycle import Verb, transition
from staging.domain.operation import Operation, Told
from staging.storage import journal
from staging.storage.dialect import db_now, db_now_plus, one_or_many
from staging.storage.due import IS_DUE
from staging.storage.rows import base_select, code_in, code_is, to_operation
from staging.storage.tables import op_queue

q = op_queue.c


class KeyTaken(Exception):
    """The tenant's idempotency key is in the queue already; the transaction is to be rolled back."""


_IDS: BindParameter[str] = bindparam("ids", expanding=True)

# --- reading -------------------------------------------------------------------------------------------------------

_BY_IDS = base_select().where(q.sId.in_(_IDS))
_BY_IDS_NOW = _BY_IDS.add_columns(db_now().label("now"))
_BY_PREPARATION = (
    base_select()
    .where(
        q.sPreparationId == bindparam("preparation"),
        q.sBrandsId == bindparam("b"),
        q.sSubsidiaryId == bindparam("s"),
    )
    .order_by(q.iFlowStep, q.sId)
)


def by_ids(connection: Connection, ids: Sequence[str]) -> list[Operation]:
    """Operations of ``ids`` in that order; unknown ids are left out."""
    found = {row.id: to_operation(row) for row in connection.execute(_BY_IDS, {"ids": list(ids)})}
    return [found[i] for i in dict.fromkeys(ids) if i in found]


def get(connection: Connection, tenant: Tenant, op_id: str) -> Operation | None:
    """One operation of the tenant, or None (also for another tenant's)."""
    found = by_ids(connection, [op_id])
    return found[0] if found and found[0].tenant == tenant else None


def by_preparation(connection: Connection, tenant: Tenant, preparation_id: str) -> list[Operation]:
    """What a confirm of this preparation inserted, in the order of its items."""
    wanted = {"preparation": preparation_id, "b": tenant.brands_id, "s": tenant.subsidiary_id}
    return [to_operation(row) for row in connection.execute(_BY_PREPARATION, wanted)]


def expired(connection: Connection, limit: int) -> list[Operation]:
    """Rows past ``tExpireAt`` that nobody runs."""
    waiting = [
        m for m in StatusCode if not m.is_terminal and m not in (StatusCode.RUNNING, StatusCode.UNKNOWN)
    ]
    statement = base_select().where(
        q.sStatus == Status.PENDING.value, code_in(waiting), q.tExpireAt <= db_now()
    )
    return [to_operation(row) for row in connection.execute(statement.limit(limit))]


def lapsed(connection: Connection, limit: int) -> list[Operation]:
    """Rows whose lease ended while running or while being looked up."""
    return _leased(connection, limit, q.tLeaseUntil <= db_now())


def held_at(connection: Connection, place: str, limit: int) -> list[Operation]:
    """Rows with a running lease whose fencing token was given to a process of ``place``; none for the empty place."""
    if not place:
        return []
    here = q.sLeaseToken.startswith(f"{place}.", autoescape=True)
    return _leased(connection, limit, q.tLeaseUntil > db_now(), here)


def _leased(connection: Connection, limit: int, *conditions: ColumnElement[bool]) -> list[Operation]:
    """Rows running or being looked up, of which ``conditions`` hold, first those whose lease ends first."""
    held = code_in((StatusCode.RUNNING, StatusCode.UNKNOWN))
    statement = base_select().where(held, q.sStatus == Status.PENDING.value, *conditions)
    return [to_operation(row) for row in connection.execute(statement.order_by(q.tLeaseUntil).limit(limit))]


# --- moving --------------------------------------------------------------------------------------------------------


def move(
    connection: Connection,
    verb: Verb,
    operation: Operation,
    target: StatusCode,
    *,
    actor: Actor | None = None,
    token: str | None = None,
    message: str = "",
    changes: Mapping[str, Any] | None = None,
) -> bool:
    """Compare-and-set one operation from the code it was read with to ``target`` and write the event.

    The guard names status, code, seq and, for a leased move, the fencing ``token``. ``changes``: column → value or SQL.
    Returns False where the row is no longer as read: nothing was written. Raises IllegalTransition for a move that
    the lifecycle does not list.
    """
    source = operation.status_code
    rule = transition(verb, source, target)
    guard = [q.sId == operation.id, q.sStatus == operation.status, code_is(source or target)]
    if rule.leased:
        if not token:
            raise ValueError(f"{verb} needs the fencing token")
        guard.append(q.sLeaseToken == token)
    else:
        guard.append(func.coalesce(q.iSeq, 0) == operation.seq)
    values: dict[str, Any] = {
        "sStatus": target.status.value,
        "iStatusCode": int(target),
        "iSeq": func.coalesce(q.iSeq, 0) + 1,
    }
    if target is not StatusCode.RUNNING and not (changes and "sLeaseToken" in changes):
        values |= {"sLeaseToken": None, "tLeaseUntil": None}
    statement = update(op_queue).where(*guard).values(values | dict(changes or {}))
    if connection.execute(statement).rowcount != 1:
        return False
    journal.record(connection, [operation.id], verb, message=message, actor=actor)
    return True


_ADMIT = (
    update(op_queue)
    .where(q.sId == bindparam("id"), IS_DUE, func.coalesce(q.iSeq, 0) == 0)
    .values(
        iSeq=1,
        sCommandType=bindparam("command_type"),
        sTargetModuleId=bindparam("module_id"),
        sTargetTable=bindparam("target_table"),
        sIdempotencyKey=func.coalesce(q.sIdempotencyKey, q.sId),
        sPayloadHash=bindparam("payload_hash"),
        bNeedsApproval=bindparam("needs_approval"),
    )
)


def admit(connection: Connection, operation: Operation, derived: Mapping[str, Any]) -> bool:
    """Take in a row of foreign SQL (seq 0): fill what it left to us and write event 1. False: somebody else did."""
    transition(Verb.ADMIT, StatusCode.SUBMITTED, StatusCode.SUBMITTED)
    try:
        if connection.execute(_ADMIT, {"id": operation.id, **derived}).rowcount != 1:
            return False
    except IntegrityError as error:
        raise KeyTaken(operation.idempotency_key) from error
    journal.record(connection, [operation.id], Verb.ADMIT, actor=operation.maker_actor)
    return True


_CLAIM_VALUES = {
    "iStatusCode": int(StatusCode.RUNNING),
    "iAttempt": func.coalesce(q.iAttempt, 0) + 1,
    "sLeaseToken": bindparam("token"),
    "tLeaseUntil": db_now_plus(bindparam("lease_s")),
    "iSeq": q.iSeq + 1,
}
# Whoever was claimed before may have killed its worker: it runs alone, so that it cannot burn its neighbours' attempts.
_CLAIMABLE = and_(
    q.sId.in_(_IDS), IS_DUE, q.iSeq > 0, or_(func.coalesce(q.iAttempt, 0) == 0, bindparam("single") == 1)
)
_CLAIM = update(op_queue).where(_CLAIMABLE).values(_CLAIM_VALUES)
_LOCK_CLAIMABLE = select(q.sId).where(_CLAIMABLE).order_by(q.sId).with_for_update(skip_locked=True)
_CLAIMED = _BY_IDS_NOW.where(q.sLeaseToken == bindparam("token"))


def claim(
    connection: Connection, ids: Sequence[str], token: str, lease_s: float
) -> tuple[list[Operation], list[Told]]:
    """Claim what is due among ``ids`` under a fresh fencing ``token``: 100 → 101, attempt + 1, lease by database time.

    Rows locked by a competitor are skipped where the engine can (SKIP LOCKED first, RELIABILITY B4-B6: the UPDATE then
    names exactly the locked ids). Returns the claimed operations in the order of ``ids``, and what is to be told.
    """
    transition(Verb.CLAIM, StatusCode.SUBMITTED, StatusCode.RUNNING)
    wanted = {"ids": sorted(set(ids)), "single": int(len(ids) == 1)}
    if connection.dialect.name != "sqlite":
        wanted["ids"] = [row.sId for row in connection.execute(_LOCK_CLAIMABLE, wanted)]
    if not wanted["ids"]:
        return [], []
    count = connection.execute(_CLAIM, wanted | {"token": token, "lease_s": lease_s}).rowcount
    if not count:
        return [], []
    rows = connection.execute(_CLAIMED, {"ids": wanted["ids"], "token": token}).all()
    found = {row.id: to_operation(row) for row in rows}
    claimed = [found[i] for i in dict.fromkeys(ids) if i in found]
    told = journal.record_as_read(connection, claimed, Verb.CLAIM, rows[0].now)
    return claimed, told


@dataclass(frozen=True, slots=True)
class End:
    """A running operation's end: ``code``, and the values of the columns that say how it went (``tExecutedDate`` is
    set by the statement)."""

    operation: Operation
    code: StatusCode
    columns: Mapping[str, Any]

    @property
    def ended(self) -> Operation:
        """The operation as ``finish`` has written it, ``executed_at`` left out."""
        return replace(
            self.operation,
            status=self.code.status.value,
            code=int(self.code),
            seq=self.operation.seq + 1,
            result_bill_id=self.columns[q.sResultBillId.name],
            result_message=self.columns[q.sResultMsg.name],
            error_message=self.columns[q.sErrorMsg.name],
            error_code=self.columns[q.sErrorCode.name] or "",
            error_detail_json=self.columns[q.jErrorDetail.name],
            lease_token=None,
            lease_until=None,
        )


_END_COLUMNS = (q.sResultBillId, q.sResultMsg, q.sErrorMsg, q.sErrorCode, q.jErrorDetail)
_FINISH = (
    update(op_queue)
    .where(
        q.sId == bindparam("id"),
        q.sStatus == Status.PENDING.value,
        code_is(StatusCode.RUNNING),
        q.sLeaseToken == bindparam("token"),
        # The token alone would do; thus what ``End.ended`` says is what is written.
        q.iSeq == bindparam("seq"),
    )
    .values(
        {
            q.sStatus: bindparam("to_status"),
            q.iStatusCode: bindparam("to_code"),
            q.iSeq: q.iSeq + 1,
            q.sLeaseToken: None,
            q.tLeaseUntil: None,
            q.tExecutedDate: db_now(),
            **{column: bindparam(f"to_{column.name}", type_=column.type) for column in _END_COLUMNS},
        }
    )
)


def finish(connection: Connection, ends: Sequence[End]) -> bool:
    """Compare-and-set all of ``ends`` from 101, each under its operation's fencing token. The caller writes the events
    (``record_ends``) in the same transaction.

    Returns False where one is no longer held: the transaction is to be rolled back.
    """
    rows = []
    for end in ends:
        transition(Verb.FINISH, StatusCode.RUNNING, end.code)
        held = end.operation
        row: dict[str, Any] = {"id": held.id, "token": held.lease_token, "seq": held.seq}
        row |= {"to_status": end.code.status.value, "to_code": int(end.code)}
        rows.append(row | {f"to_{column.name}": end.columns[column.name] for column in _END_COLUMNS})
    return connection.execute(_FINISH, one_or_many(rows)).rowcount == len(ends)


def record_ends(connection: Connection, ends: Sequence[End], at: datetime) -> list[Told]:
    """The events of what ``finish`` has moved, at ``at`` (database time), and what is to be told of them."""
    ended = [end.ended for end in ends]
    messages = [
        (o.result_message if o.status == Status.SUCCESS.value else o.error_message) or "" for o in ended
    ]
    return journal.record_as_read(connection, ended, Verb.FINISH, at, messages=messages)


_RENEW = (
    update(op_queue)
    .where(q.sId.in_(_IDS), q.sLeaseToken == bindparam("token"), code_is(StatusCode.RUNNING))
    .values(tLeaseUntil=db_now_plus(bindparam("lease_s")))
)


def renew(connection: Connection, ids: Sequence[str], token: str, lease_s: float) -> int:
    """Extend the lease of rows still held under ``token``; returns how many still are."""
    return connection.execute(_RENEW, {"ids": list(ids), "token": token, "lease_s": lease_s}).rowcount


_IS_HELD = select(q.sId).where(q.sId == bindparam("id"), q.sLeaseToken == bindparam("token"))


def is_held(connection: Connection, op_id: str, token: str) -> bool:
    """True while the row is held under ``token``: nobody has taken the lease over."""
    return connection.execute(_IS_HELD, {"id": op_id, "token": token}).first() is not None


# The row's expiry where it is still ahead, else none.
EXPIRY_AHEAD: ColumnElement[Any] = case((q.tExpireAt > db_now(), q.tExpireAt), else_=null())
_IS_EXPIRED = select(q.sId).where(q.sId == bindparam("id"), q.tExpireAt <= db_now())


def is_expired(connection: Connection, op_id: str) -> bool:
    """True where the row's expiry is over, by database time."""
    return connection.execute(_IS_EXPIRED, {"id": op_id}).first() is not None


def take_over(connection: Connection, operation: Operation, new_token: str, lease_s: float) -> bool:
    """The reconciler takes a lapsed lease: 101 → 102 (or keeps 102), fresh token. False: the lease moved meanwhile.

    From here on the former holder can commit nothing: its token is gone (invariant I4).
    """
    lease = {"sLeaseToken": new_token, "tLeaseUntil": db_now_plus(lease_s)}
    if operation.status_code is StatusCode.RUNNING:
        return move(
            connection, Verb.LOSE, operation, StatusCode.UNKNOWN, token=operation.lease_token, changes=lease
        )
    statement = (
        update(op_queue)
        .where(q.sId == operation.id, code_is(StatusCode.UNKNOWN), q.sLeaseToken == operation.lease_token)
        .values(lease)
    )
    return connection.execute(statement).rowcount == 1


def error_changes(message: str, code: str, detail: Mapping[str, Any] | None) -> dict[str, Any]:
    """Columns a failure fills; ``detail`` is the wire error body, kept so that a person can act on it (I11)."""
    return {
        "sErrorMsg": message,
        "sErrorCode": code,
        "jErrorDetail": dump_json(dict(detail)) if detail else None,
        "tExecutedDate": db_now(),
    }


def maker_from_user_column(connection: Connection, ids: Sequence[str]) -> None:
    """For adopted tables that also have ``sUserId``: it is the maker where ``sMakePerson`` is empty."""
    user: ColumnElement[str] = literal_column(connection.dialect.identifier_preparer.quote("sUserId"))
    empty = func.coalesce(q.sMakePerson, "") == ""
    connection.execute(
        update(op_queue)
        .where(q.sId.in_(_IDS), empty)
        .values(sMakePerson=case((user.is_(None), ""), else_=user)),
        {"ids": list(ids)},
    )
