"""Operations made readable: the wire form, in the reader's language."""

from __future__ import annotations

import json
from typing import Any

from staging.contracts.operation import OperationEntry, OperationView
from staging.contracts.status import StatusCode
from staging.domain.lifecycle import Verb, sources
from staging.domain.operation import Operation, link_for
from staging.storage.journal import JournalEntry


def view_of(operation: Operation, locale: str) -> OperationView:
    """What the owner (or an operator) is shown of ``operation``."""
    code = operation.status_code
    return OperationView(
        id=operation.id,
        seq=operation.seq,
        status=operation.status,
        code=operation.code,
        meaning=code.meaning(locale) if code else operation.status,
        message=operation.message,
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
        error=_parsed(operation.error_detail_json),
        payload=_parsed(operation.payload_json),
        preview=_parsed(operation.preview_json),
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
        can_cancel=code in sources(Verb.CANCEL),
        can_retry=code in sources(Verb.RETRY),
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


def _parsed(text: str | None) -> Any:
    """For showing only: numbers become the text they were written as, and what is not JSON is shown as it is."""
    if not text:
        return None
    try:
        return json.loads(text, parse_float=str, parse_constant=str)
    except ValueError:
        return text
