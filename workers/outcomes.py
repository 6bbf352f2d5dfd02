"""What an execution's end means for the row: the one place where errors become codes (DESIGN section 2, step 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode
from staging.domain.errors import OpstageError, Refused, Transient
from staging.domain.intake import sanitize_text
from staging.domain.operation import Operation
from staging.domain.ports import LedgerEntry, Outcome
from staging.storage.dberrors import DbFailure, classify_db_error, is_db_error, refused_by

_TEXT_LIMIT = 2000
_BILL_ID_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an execution. ``error_code`` and ``detail`` are empty for a success; ``message`` is in the
    row's language.

    ``again``: not the end, the operation goes back to 100 while attempts are left.
    """

    code: StatusCode
    message: str
    result_bill_id: str = ""
    error_code: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    again: bool = False


def succeeded(operation: Operation, outcome: Outcome) -> Done:
    """Before COMMIT. Raises ValueError for a record id that the row could not take: nothing may be committed then."""
    if sanitize_text(outcome.result_bill_id, _BILL_ID_LIMIT) != outcome.result_bill_id:
        raise ValueError(f"{outcome.result_bill_id!r} cannot be kept as the id of the result")
    message = outcome.message.get(operation.locale) or outcome.message["en"]
    return Done(StatusCode.EXECUTED, sanitize_text(message, _TEXT_LIMIT), outcome.result_bill_id)


def ledger_result(outcome: Outcome) -> dict[str, Any]:
    """What the ledger keeps, so that a repeat can give the first answer again."""
    return {
        "resultBillId": outcome.result_bill_id,
        "message": dict(outcome.message),
        "result": dict(outcome.result),
    }


def same_content(operation: Operation, entry: LedgerEntry) -> bool:
    """True if what the ledger proves is what the row says."""
    return entry.payload_hash == operation.payload_hash and entry.command_type == operation.command_type


def from_ledger(operation: Operation, entry: LedgerEntry) -> Done:
    """The answer of an execution that committed before: this operation's own (200), or another's with the same content
    (201); the same key with other content is refused (I3)."""
    if not same_content(operation, entry):
        return refused(operation, Refused(ErrorCode.IDEMPOTENCY_CONFLICT))
    code = StatusCode.EXECUTED if entry.op_id == operation.id else StatusCode.EXECUTED_BEFORE
    kept = entry.result or {}
    messages = kept.get("message") or {}
    message = messages.get(operation.locale) or code.meaning(operation.locale)
    return Done(code, sanitize_text(message, _TEXT_LIMIT), str(kept.get("resultBillId") or ""))


def refused(operation: Operation, error: OpstageError) -> Done:
    """A rule or a precondition said no: final, with all that a person needs to act on it (I11)."""
    if isinstance(error, Transient):
        return _plain(operation, StatusCode.UNEXPECTED, error.code.value, again=True)
    body = error.body(operation.locale).to_wire()["error"]
    message = sanitize_text(error.message(operation.locale), _TEXT_LIMIT)
    return Done(error.status_code, message, error_code=error.code.value, detail=body)


def failed(operation: Operation, error: BaseException, *, timed_out: bool = False) -> Done:
    """An exception before COMMIT, so rolled back. Transient ones go back to 100 (``again``) while attempts are left."""
    if timed_out:
        return _plain(operation, StatusCode.TIMED_OUT)
    if not is_db_error(error):
        return _plain(operation, StatusCode.UNEXPECTED, f"{type(error).__name__}")
    failure = classify_db_error(error)
    if failure in (DbFailure.LOCK_TIMEOUT, DbFailure.BUSY):
        return _plain(operation, StatusCode.LOCKED, again=True)
    if failure is DbFailure.STATEMENT_TIMEOUT:
        return _plain(operation, StatusCode.TIMED_OUT)
    if failure.is_transient:
        return _plain(operation, StatusCode.UNEXPECTED, failure.value, again=True)
    if failure is DbFailure.DATA:
        return _plain(operation, StatusCode.PAYLOAD_INVALID, refused_by(error))
    if failure in (DbFailure.UNIQUE, DbFailure.INTEGRITY):
        return _plain(operation, StatusCode.RULE_REFUSED, refused_by(error))
    return _plain(operation, StatusCode.UNEXPECTED, failure.value)


def interrupted(operation: Operation) -> Done:
    """The process was told to end (or the handler ended it) before COMMIT."""
    return _plain(operation, StatusCode.UNEXPECTED, "worker stopped", again=True)


def worn_out(operation: Operation) -> Done:
    """Its worker died on every attempt."""
    return _plain(operation, StatusCode.UNEXPECTED, f"worker lost, {operation.attempt}x")


def _plain(operation: Operation, code: StatusCode, reason: str = "", again: bool = False) -> Done:
    # Only the kind of error is shown, or a column's name: its text may carry SQL, values or hosts; the log has it.
    message = code.meaning(operation.locale) + (f" ({reason})" if reason else "")
    return Done(
        code, message, error_code=ErrorCode.UNAVAILABLE.value if again else code.name.lower(), again=again
    )
