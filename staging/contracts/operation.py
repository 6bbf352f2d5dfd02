"""An operation as people and programs see it over HTTP, MCP and the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from staging.contracts.error import Wire


class OperationView(Wire):
    """Everything about one operation that its owner may see. Times are UTC; ``code`` is null on legacy rows only.

    ``meaning`` is the code in the reader's language, ``message`` what the row says. ``error`` is the wire
    error body of a failure, with details, candidates or the three-way conflict. ``preview`` is what the person
    confirmed. ``archived_at``: since then it can only be looked at.
    """

    id: str
    seq: int
    status: str
    code: int | None
    meaning: str
    message: str
    op_type: str
    command_type: str
    form_id: str
    module_id: str
    target_bill_id: str
    maker: str
    auto_execute: bool
    requires_approval: bool
    confirmed_by: str | None
    approved_by: str | None
    result_bill_id: str | None
    link: str | None
    error: dict[str, Any] | None
    payload: Any
    preview: dict[str, Any] | None
    created_at: datetime | None
    confirmed_at: datetime | None
    executed_at: datetime | None
    expires_at: datetime | None
    not_before: datetime | None
    attempt: int
    max_attempts: int
    conversation_id: str
    trace_id: str
    preparation_id: str | None
    idempotency_key: str
    payload_hash: str
    archived_at: datetime | None = None
    can_cancel: bool
    can_retry: bool


class OperationEntry(Wire):
    """One event of an operation's journal."""

    seq: int
    verb: str
    status: str
    code: int
    meaning: str
    attempt: int
    message: str
    actor: str
    actor_kind: str
    at: datetime


class PrefillView(Wire):
    """What the ERP's native form opens with. ``record``: id of the record acted on, "" for a new one; ``values``: field
    → value as confirmed (decimals as exact strings), lines under their child's name; ``source_ref``: for generate.

    When the user has saved, the ERP calls ``complete`` with the id of the record it became.
    """

    operation_id: str
    seq: int
    form_id: str
    module_id: str
    op_type: str
    command_type: str
    record: str
    values: Any
    source_ref: Any
    preview: dict[str, Any] | None
    maker: str
    conversation_id: str


class TodoView(Wire):
    """ "My AI todos": what waits for me, what is under way, what ended lately."""

    waiting: list[OperationView]
    running: list[OperationView]
    recent: list[OperationView]
