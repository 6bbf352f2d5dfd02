"""All SQL that reads or moves rows of ``ai_op_queue``. Every change of code is one compare-and-set UPDATE plus
its event in the caller's transaction; the row count decides who won. Statements are built once; database time
throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    bindparam,
    case,
    func,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Actor, Tenant
from staging.domain.intake import dump_json
from staging.domain.lifecycle import Verb, transition
from staging.domain.operation import Operation
from staging.storage import journal
from staging.storage.dialect import db_now, db_now_plus
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
