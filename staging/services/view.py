"""Operations made readable: the wire form, in the reader's language."""

from __future__ import annotations

import json
from typing import Any

from staging.contracts.operation import OperationEntry, OperationView, PrefillView
from staging.contracts.status import StatusCode
from staging.domain.intake import JS_SAFE_INTEGER, is_sane, sanitize_text
from staging.domain.lifecycle import Verb, sources
from staging.domain.operation import Operation, link_for
from staging.storage.journal import JournalEntry

_SHOWN_DEPTH = 40
_SHOWN_TEXT = 100_000


def view_of(operation: Operation, locale: str) -> OperationView:
    """What the owner (or an operator) is shown of ``operation``."""
    code = operation.status_code
    return OperationView(
        id=operation.id,
        seq=operation.seq,
        status=operation.status,
        code=operation.code,
        meaning=code.meaning(locale) if code else operation.status,
        message=operation.message_in(locale),
        op_type=operation.op_type,
        command_type=operation.command_type,
        form_id=operation.form_id,
        module_id=operation.module_id,
        target_bill_id=operation.target_bill_id,
        maker=operation.maker,
        auto_execute=operation.auto_execute,
        requires_approval=operation.needs_approval,
        confirmed_by=operation.confirmed_by,
        approved_by=operation.approved_by,
        result_bill_id=operation.result_bill_id,
        link=link_for(operation),
        error=_object(operation.error_detail_json),
        payload=_parsed(operation.payload_json),
        preview=_object(operation.preview_json),
        created_at=operation.created_at,
        confirmed_at=operation.confirmed_at,
        executed_at=operation.executed_at,
        expires_at=operation.expires_at,
        not_before=operation.not_before,
        attempt=operation.attempt,
        max_attempts=operation.max_attempts,
        conversation_id=operation.conversation_id,
        trace_id=operation.trace_id,
        preparation_id=operation.preparation_id,
        idempotency_key=operation.idempotency_key,
        payload_hash=operation.payload_hash,
        archived_at=operation.archived_at,
        can_cancel=code in sources(Verb.CANCEL) and operation.archived_at is None,
        can_retry=code in sources(Verb.RETRY) and operation.archived_at is None,
    )


def entry_of(entry: JournalEntry, locale: str) -> OperationEntry:
    code = StatusCode.of(entry.code)
    return OperationEntry(
        seq=entry.seq,
        verb=entry.verb,
        status=entry.status,
        code=entry.code,
        meaning=code.meaning(locale) if code else str(entry.code),
        attempt=entry.attempt,
        message=entry.message,
        actor=entry.actor,
        actor_kind=entry.actor_kind,
        at=entry.at,
    )


def prefill_of(operation: Operation) -> PrefillView:
    return PrefillView(
        operation_id=operation.id,
        seq=operation.seq,
        form_id=operation.form_id,
        module_id=operation.module_id,
        op_type=operation.op_type,
        command_type=operation.command_type,
        record=operation.target_bill_id,
        values=_parsed(operation.payload_json),
        source_ref=_parsed(operation.source_ref_json),
        preview=_object(operation.preview_json),
        maker=operation.maker,
        conversation_id=operation.conversation_id,
    )


def _object(text: str | None) -> dict[str, Any] | None:
    value = _parsed(text)
    return value if isinstance(value, dict) else None


def _parsed(text: str | None) -> Any:
    """For showing only, of a row that anybody may have written: exact numbers as the text they were written as, what
    is not JSON or nested without end as the text it is, and nothing that no answer can carry."""
    if not text:
        return None
    try:
        value = json.loads(text, parse_float=str, parse_int=_integer, parse_constant=str)
        # What is not written in the text, nor as an escape, is in none of its strings.
        return _showable(value, _SHOWN_DEPTH, sane="\\" not in text and is_sane(text))
    except (ValueError, RecursionError):
        return sanitize_text(text, _SHOWN_TEXT)


def _integer(digits: str) -> int | str:
    """As a number where every reader keeps it exact."""
    number = int(digits) if len(digits) < 20 else JS_SAFE_INTEGER + 1
    return number if abs(number) <= JS_SAFE_INTEGER else digits


def _showable(value: Any, depth: int, *, sane: bool) -> Any:
    """``value`` without what no answer can carry; ``sane``: there is no such text in it."""
    if not depth:
        raise ValueError("nested too deep to show")
    if isinstance(value, str):
        return value if sane else sanitize_text(value, len(value) + 1)
    if isinstance(value, list):
        return [_showable(item, depth - 1, sane=sane) for item in value]
    if isinstance(value, dict):
        return {
            key if sane else sanitize_text(key, len(key) + 1): _showable(item, depth - 1, sane=sane)
            for key, item in value.items()
        }
    return value
