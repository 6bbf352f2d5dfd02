"""An operation as the services and the executor see it: a row of ``ai_op_queue`` without its SQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from staging.contracts.error import ErrorCode
from staging.contracts.event import OperationEvent
from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Actor, ActorKind, Tenant
from staging.domain.messages import render

_ERROR_CODES = {code.value: code for code in ErrorCode}


@dataclass(frozen=True, slots=True)
class Operation:
    """``status``/``code`` are as stored: an adopted table may hold legacy words, then ``code`` may be None.

    ``payload_json`` is the row's raw text, untrusted until ``domain.intake`` has parsed it. Times are aware UTC.
    ``archived_at`` is set on what was moved to the archive: it can be looked at, and nothing moves it any more.
    """

    id: str
    tenant: Tenant
    maker: str
    op_type: str
    command_type: str
    form_id: str
    module_id: str
    target_table: str
    target_bill_id: str
    payload_json: str
    source_ref_json: str | None
    auto_execute: bool
    status: str
    code: int | None
    seq: int
    result_bill_id: str | None
    result_message: str | None
    error_message: str | None
    error_code: str
    error_detail_json: str | None
    created_at: datetime | None
    confirmed_at: datetime | None
    executed_at: datetime | None
    expires_at: datetime | None
    not_before: datetime | None
    idempotency_key: str
    payload_hash: str
    target_version: str
    conversation_id: str
    trace_id: str
    flow_step: int
    priority: int
    attempt: int
    max_attempts: int
    lease_token: str | None
    lease_until: datetime | None
    preparation_id: str | None
    confirmed_by: str | None
    approved_by: str | None
    needs_approval: bool
    allow_duplicate: bool
    pins_json: str | None
    preview_json: str | None
    snapshot_hash: str
    seal: str
    locale: str
    archived_at: datetime | None = None

    @property
    def status_code(self) -> StatusCode | None:
        """The code, or None for a legacy row, which nothing may move."""
        code = StatusCode.of(self.code)
        return code if code is not None and code.status == self.status else None

    @property
    def maker_actor(self) -> Actor:
        """The user the ERP sees: execution happens in the maker's name and with the maker's grants."""
        return Actor(self.tenant, self.maker, ActorKind.PERSON, self.locale)

    @property
    def message(self) -> str:
        """What to tell a person now, in the row's language: ``message_in`` it, where no word needs another one."""
        return self._written or self._unsaid(self.locale)

    @property
    def _written(self) -> str | None:
        kept = {Status.SUCCESS.value: self.result_message, Status.FAIL.value: self.error_message}
        return kept.get(self.status)

    def _unsaid(self, locale: str) -> str:
        code = self.status_code
        return self.status if code is None else code.meaning(locale)

    def message_in(self, locale: str) -> str:
        """The same in a reader's language as far as the words are ours; the ERP's stay as they were written."""
        written, code = self._written, self.status_code
        if code is None or not written:
            return written or self._unsaid(locale)
        meant = code.meaning(self.locale)
        if written.startswith(meant):  # and maybe a reason in brackets
            return code.meaning(locale) + written.removeprefix(meant)
        known = _ERROR_CODES.get(self.error_code)
        if known and written == render(known, {}, self.locale)[0]:
            return render(known, {}, locale)[0]
        return written


@dataclass(frozen=True, slots=True)
class NewOperation:
    """What a confirm inserts. ``code`` is 100, 103, 104 or 105; keys and hashes are fixed here for good."""

    id: str
    tenant: Tenant
    maker: str
    op_type: str
    command_type: str
    form_id: str
    module_id: str
    target_table: str
    target_bill_id: str
    payload_json: str
    source_ref_json: str | None
    auto_execute: bool
    needs_approval: bool
    allow_duplicate: bool
    code: StatusCode
    idempotency_key: str
    payload_hash: str
    target_version: str
    pins_json: str
    preview_json: str
    snapshot_hash: str
    preparation_id: str
    confirmed_by: str
    conversation_id: str
    trace_id: str
    locale: str
    max_attempts: int
    expires_in_s: float | None
    not_before: datetime | None
    seal: str = ""
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """What is told of an operation's move: the fields of ``Operation`` with that name, as the move has left them.
    ``message`` is in the row's language. Where many move, it spares copies of all the rest."""

    id: str
    tenant: Tenant
    maker: str
    form_id: str
    conversation_id: str
    attempt: int
    seq: int
    status: str
    code: int | None
    message: str
    result_bill_id: str | None


def link_for(operation: Operation | Moved) -> str | None:
    """Where a person goes next: the executed record, or the ERP's form opening on this staging row (103)."""
    form = quote(operation.form_id, safe="")
    if operation.status == Status.SUCCESS and operation.result_bill_id:
        return f"/form/{form}?bill={quote(operation.result_bill_id, safe='')}"
    if operation.code == StatusCode.WAITING_USER:
        return f"/form/{form}?staging={quote(operation.id, safe='')}"
    return None


def event_payload(operation: Operation | Moved) -> dict[str, Any]:
    """Fields of ``OperationEvent`` that the operation itself knows."""
    return {
        "op_id": operation.id,
        "seq": operation.seq,
        "status": operation.status,
        "code": operation.code,
        "message": operation.message,
        "result_bill_id": operation.result_bill_id,
        "link": link_for(operation),
        "conversation_id": operation.conversation_id or None,
    }


@dataclass(frozen=True, slots=True)
class Told:
    """A committed event and whom it concerns: what a notifier publishes."""

    tenant: Tenant
    user_id: str
    event: OperationEvent
