"""The message a subscriber gets, and an entry of the journal."""

from __future__ import annotations

from datetime import datetime

from staging.contracts.error import Wire
from staging.contracts.status import Status


class OperationEvent(Wire):
    """CONTRACT section 3. ``at`` is UTC; ``seq`` is the event's number within the operation, gap-free from 1.

    ``channels`` (who is told) is not part of the message.
    """

    op_id: str
    seq: int
    status: Status
    code: int
    message: str
    result_bill_id: str | None = None
    link: str | None = None
    conversation_id: str | None = None
    at: datetime
