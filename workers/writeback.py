"""The row's end: compare-and-set with the fencing token, event and audit entry, in the caller's transaction."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from datetime import datetime

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Actor, ActorKind
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.domain.retry import backoff_s
from staging.settings import Settings
from staging.storage import audit, claims, operations
from staging.storage.dialect import db_now, db_now_plus
from staging.storage.unit_of_work import UnitOfWork
from workers.outcomes import Done

_HOST = socket.gethostname()[:100]


class LeaseLost(Exception):
    """Somebody else holds the operation now: nothing of this attempt may be committed (I4)."""


def write_back(unit: UnitOfWork, operation: Operation, done: Done) -> None:
    """Move a running operation held under its fencing token to its end. Raises ``LeaseLost``: roll back."""
    write_back_all(unit, [(operation, done)])


def write_back_all(unit: UnitOfWork, ends: Sequence[tuple[Operation, Done]]) -> None:
    """``write_back`` of several of one tenant in a few statements. Raises ``LeaseLost`` where one is held no more."""
    rows = [claims.End(o, done.code, _columns(done)) for o, done in ends]
    finished = claims.finish(unit.connection, rows)
    if not finished.all_held:
        raise LeaseLost(", ".join(o.id for o, _ in ends))
    entries = [_entry(o, done) for o, done in ends]
    if head := finished.head:
        audit.append_to(unit.connection, audit.chain_of(entries[0].actor.tenant), head, entries)
        at: datetime | None = head.now
    else:
        at = audit.append(unit.connection, entries)
    if at is not None:
        unit.tell(claims.record_ends(unit.connection, rows, finished, at))


def resolve(unit: UnitOfWork, operation: Operation, done: Done) -> None:
    """Move an operation of unknown outcome to its end. Raises ``LeaseLost``: roll back."""
    _move(unit, operation, Verb.RESOLVE, done.code, done.message, _columns(done))
    audit.append(unit.connection, [_entry(operation, done)])


def _columns(done: Done) -> dict[str, object]:
    if done.code.status is not Status.SUCCESS:
        failure = operations.error_changes(done.message, done.error_code, done.detail)
        return {"sResultBillId": None, "sResultMsg": None, **failure}
    return {
        "sResultBillId": done.result_bill_id,
        "sResultMsg": done.message,
        "sErrorMsg": None,
        "sErrorCode": "",
        "jErrorDetail": None,
        "tExecutedDate": db_now(),
    }


def _entry(operation: Operation, done: Done) -> audit.AuditEntry:
    actor = Actor(operation.tenant, f"worker@{_HOST}", ActorKind.SYSTEM)
    detail = {"code": int(done.code), "attempt": operation.attempt, "resultBillId": done.result_bill_id}
    return audit.AuditEntry(actor, "execute", operation.id, detail)


def back_off(
    unit: UnitOfWork, operation: Operation, done: Done, settings: Settings, verb: Verb = Verb.BACK_OFF
) -> None:
    """Back to 100, due again after a backoff kept in the row. Raises ``LeaseLost``."""
    wait_s = backoff_s(operation.attempt, base_s=settings.backoff_base_s, cap_s=settings.backoff_max_s)
    changes = {"tNotBefore": db_now_plus(wait_s), "sErrorMsg": done.message, "sErrorCode": done.error_code}
    _move(unit, operation, verb, StatusCode.SUBMITTED, done.message, changes)


def release(unit: UnitOfWork, operation: Operation) -> None:
    """Back to 100 at once, the attempt not counted: it was claimed but never started. Raises ``LeaseLost``."""
    _move(
        unit, operation, Verb.BACK_OFF, StatusCode.SUBMITTED, "", {"iAttempt": max(0, operation.attempt - 1)}
    )


def _move(
    unit: UnitOfWork,
    operation: Operation,
    verb: Verb,
    code: StatusCode,
    message: str,
    changes: Mapping[str, object],
) -> None:
    if not operations.move(
        unit.connection, verb, operation, code, token=operation.lease_token, message=message, changes=changes
    ):
        raise LeaseLost(operation.id)
    unit.touch(operation.id)
