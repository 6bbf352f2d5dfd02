"""What tools answer with, typed. What is not there is left out: no empty lists, no nulls, no flags that say no."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from staging.contracts.form import FieldType
from staging.contracts.preparation import Preview
from staging.contracts.query import AppliedSort, PageInfo, QueryWarning
from staging.domain.json_schema import lean

MANY = 10_001
"""Stands for a number that the API does not count out."""


class Shape(BaseModel):
    """JSON camelCase; what the API may say beyond this is not passed on."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Answer(Shape):
    """Base of every tool's result."""

    notes: list[str] = Field(default_factory=list, description="what was left out here, and how to see it")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; fields that say nothing are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    @classmethod
    def schema_of(cls) -> dict[str, Any]:
        """JSON Schema of what ``to_json`` gives."""
        return lean(cls.model_json_schema(by_alias=True))


class Pending(Shape):
    count: int = Field(description=f"the user's operations that are not finished ({MANY}: so many or more)")
    unknown: int = Field(description="of these, whose outcome is not known yet: never stage them again")


class Staging(Answer):
    """What every answer about operations says."""

    pending: Pending


# ---------------------------------------------------------------------------------------------------- catalogue
class FormOperation(Shape):
    op_type: str
    label: str
    auto_execute: bool = Field(
        default=False, description="true: executed once confirmed; absent: done by hand in the ERP"
    )
    tool: str = Field(
        default="preview_change", description="the tool that prepares it; absent: preview_change"
    )


class FormSummary(Shape):
    form_id: str
    module: str
    label: str
    operations: list[FormOperation]


class FormsAnswer(Answer):
    forms: list[FormSummary]
    total: int


class Choice(Shape):
    value: str | int
    label: str


class FieldReference(Shape):
    form: str
    by: list[str] = Field(description="how a record may be named; names must match exactly")


class FieldInfo(Shape):
    """A flag that is not there means no."""

    name: str
    label: str
    type: FieldType
    required: bool = False
    writable: bool = Field(default=False, description="may be given when creating")
    on_update: bool = Field(default=False, description="may be changed later")
    computed: bool = Field(default=False, description="worked out by the server, never given")
    sortable: bool = False
    filterable: bool = False
    length: int | None = Field(default=None, description="characters at most")
    precision: int | None = None
    decimals: int | None = Field(default=None, description="digits after the point at most")
    minimum: str | None = None
    maximum: str | None = None
    choices: list[Choice] = Field(default_factory=list)
    reference: FieldReference | None = None
    default: dict[str, Any] | None = None


class ChildInfo(Shape):
    """Lines; they are given in the payload as a list under ``name``."""

    name: str
    label: str
    min_lines: int = 0
    max_lines: int = 500
    unique: list[str] = Field(default_factory=list, description="no two lines alike in these fields")
    fields: list[FieldInfo] = Field(default_factory=list)
    children: list[ChildInfo] = Field(default_factory=list)


class GenerateFrom(Shape):
    form_id: str
    lines: str
    target_lines: str


class FormAnswer(Answer):
    form_id: str
    module: str
    label: str
    title: list[str] = Field(default_factory=list)
    natural_key: list[str] = Field(
        default_factory=list, description="a record alike in all of these is taken for a duplicate"
    )
    number_field: str | None = None
    operations: list[FormOperation]
    generate_from: list[GenerateFrom] = Field(default_factory=list)
    fields: list[FieldInfo]
    children: list[ChildInfo] = Field(default_factory=list)
    filter_schema: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of query_records' filter for this form"
    )
    sortable: list[str] = Field(default_factory=list, description="what query_records can sort by")
    default_sort: list[AppliedSort] = Field(default_factory=list)


# ---------------------------------------------------------------------------------------------------- records
class PageAnswer(Answer):
    """``values`` are exact; ``texts`` are what a person reads where that differs (names instead of ids)."""

    items: list[dict[str, Any]]
    page: PageInfo
    applied_sort: list[AppliedSort] = Field(default_factory=list)
    warnings: list[QueryWarning] = Field(default_factory=list)


class Line(Shape):
    id: str
    values: dict[str, Any] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    children: dict[str, list[Line]] = Field(default_factory=dict)


class RecordAnswer(Answer):
    form_id: str
    id: str
    label: str
    states: dict[str, bool] = Field(default_factory=dict)
    values: dict[str, Any]
    texts: dict[str, str] = Field(default_factory=dict)
    children: dict[str, list[Line]] = Field(default_factory=dict)


# ---------------------------------------------------------------------------------------------------- operations
class PreparedItem(Shape):
    command_type: str
    auto_execute: bool = Field(
        default=False,
        description="true: executed once the user confirms; absent: the user then does it in the ERP",
    )
    requires_approval: bool = Field(
        default=False, description="true: a second person must approve after the confirm"
    )
    preview: Preview


class PreparedAnswer(Staging):
    """Nothing has been changed. ``preview`` is what the user is asked to confirm: old → new."""

    state: Literal["PREPARED"] = Field(description="shown, not confirmed, not executed")
    preparation_id: str
    expires_at: datetime
    items: list[PreparedItem]
    confirm_url: str = Field(description="where the user confirms, edits or drops it")
    next: str = Field(description="what has to happen now")


class OperationInfo(Shape):
    operation_id: str
    seq: int = Field(description="number of its newest event")
    status: str = Field(description="pending, success or fail; only success means done")
    code: int | None = None
    meaning: str
    finished: bool = Field(description="false: do not tell the user that it is done")
    next: str = Field(description="what this means for you")
    message: str = ""
    title: str = ""
    form_id: str = ""
    op_type: str = ""
    result_bill_id: str | None = None
    link: str | None = Field(default=None, description="path in the ERP, for the user")
    error: dict[str, Any] | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    can_cancel: bool = False
    can_retry: bool = Field(default=False, description="by the user, on their page")


class StatusAnswer(Staging):
    operation: OperationInfo


class TodosAnswer(Staging):
    """Newest first but for ``waiting``, oldest first."""

    waiting: list[OperationInfo] = Field(
        description="for the user to finish in the ERP (103) or to approve (104)"
    )
    running: list[OperationInfo] = Field(description="not finished yet")
    recent: list[OperationInfo] = Field(description="ended lately")


class ConfirmAnswer(Staging):
    """``confirmed``: by the person, in this call or before; never on anybody else's word."""

    confirmed: bool
    next: str
    operations: list[OperationInfo] = Field(default_factory=list)
