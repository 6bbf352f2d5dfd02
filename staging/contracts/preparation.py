"""What an agent asks to prepare, and the preview a person is shown."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from staging.contracts.error import Wire
from staging.contracts.moment import Moment
from staging.contracts.status import Status


class OpType(StrEnum):
    """The operation types every form may have; a registered command has its own verb."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    EXAMINE = "examine"
    CANCEL_EXAMINE = "cancelExamine"
    INVALID = "invalid"
    CANCEL_INVALID = "cancelInvalid"
    GENERATE = "generate"


class PrepareItem(Wire):
    """One operation to prepare. Either ``form_id`` + ``op_type``, or ``command_type`` of a registered command.

    ``record``: id or document number. ``payload``: field → value, child lines under the child's name. ``source_ref``
    (generate): ``{"formId", "record", "lines": [{"id", "quantity"?}]}``. ``not_before`` is UTC, ``expires_in`` seconds.
    """

    form_id: str = Field(default="", max_length=100)
    op_type: str = Field(default="", max_length=50)
    command_type: str = Field(default="", max_length=150)
    record: str = Field(default="", max_length=200)
    payload: dict[str, Any] = Field(default_factory=dict)
    source_ref: dict[str, Any] | None = None
    depends_on: list[str] = Field(default_factory=list, max_length=50)
    not_before: Moment | None = None
    expires_in: int | None = Field(default=None, gt=0, le=31_536_000)
    allow_duplicate: bool = False


class PrepareRequest(PrepareItem):
    """A single operation, or several under ``items`` shown as one preview and confirmed in one transaction."""

    items: list[PrepareItem] = Field(default_factory=list, max_length=100)
    conversation_id: str = Field(default="", max_length=100)
    trace_id: str = Field(default="", max_length=100)
    supersedes: str = Field(default="", max_length=64)


class FieldChange(Wire):
    """One field, old → new. ``old``/``new`` are JSON-ready values; the ``*_text`` are what a person reads
    (names, not ids)."""

    field: str
    label: str
    type: str
    old: Any = None
    new: Any = None
    old_text: str = ""
    new_text: str = ""


class ChildLine(Wire):
    """A child line and what happens to it; ``children`` are its own lines (grandchildren)."""

    action: Literal["add", "change", "remove", "keep"]
    line_id: str = ""
    fields: list[FieldChange] = []
    children: list[ChildSection] = []


class ChildSection(Wire):
    """All lines of one child table."""

    child: str
    label: str
    lines: list[ChildLine] = []


class PreviewWarning(Wire):
    """Something the person should know before confirming."""

    code: str
    message: str


class Preview(Wire):
    """Exactly what would change, complete and untruncated, rendered by the server."""

    title: str
    form_id: str
    form_label: str
    op_type: str
    op_label: str
    record_id: str = ""
    record_label: str = ""
    fields: list[FieldChange] = []
    children: list[ChildSection] = []
    totals: list[FieldChange] = []
    warnings: list[PreviewWarning] = []


class PreparationItem(Wire):
    """One prepared operation of a preparation."""

    command_type: str
    auto_execute: bool
    requires_approval: bool
    payload_hash: str
    preview: Preview


class Preparation(Wire):
    """The answer to a prepare. The top-level fields repeat the first item's; ``items`` holds all of them."""

    state: Literal["PREPARED"] = "PREPARED"
    preparation_id: str
    expires_at: datetime
    snapshot_hash: str
    command_type: str
    auto_execute: bool
    requires_approval: bool
    conversation_id: str = Field(default="", description="where it was proposed")
    preview: Preview
    items: list[PreparationItem]


class ConfirmRequest(Wire):
    """What the person changed on the card: field → value; for several operations under ``"0"``, ``"1"`` … in
    ``item_edits``.

    ``allow_duplicate``: the person read the duplicate warning and wants it anyway.
    """

    edits: dict[str, Any] = Field(default_factory=dict)
    item_edits: dict[str, dict[str, Any]] = Field(default_factory=dict)
    allow_duplicate: bool = False


class OperationStatus(Wire):
    """The short answer to "how is it going"."""

    id: str
    seq: int
    status: Status | str
    code: int | None
    message: str
    result_bill_id: str | None = None
    link: str | None = None


ChildLine.model_rebuild()
