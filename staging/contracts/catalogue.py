"""The catalogue as programs read it, in the reader's language: forms, their fields, what may be done and asked.

An adapter may say more; what is not said is left out.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from staging.contracts.error import Wire
from staging.contracts.form import FieldType
from staging.contracts.query import AppliedSort


class Said(Wire):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)


class OperationInfo(Said):
    """An operation granted; a registered command has a ``description`` and the JSON Schema of its payload."""

    op_type: str
    label: str
    command_type: str
    auto_execute: bool = Field(description="false: the user completes it in the ERP's own form")
    description: str = ""
    input_schema: dict[str, Any] | None = None


class FormEntry(Said):
    form_id: str
    module: str
    label: str
    op_types: list[OperationInfo]


class ChoiceInfo(Said):
    value: str | int
    label: str


class ReferenceInfo(Said):
    form: str
    by: list[str] = Field(description="how a record may be named: id, or exactly by one of these fields")


class FieldInfo(Said):
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
    choices: list[ChoiceInfo] | None = None
    reference: ReferenceInfo | None = None
    default: dict[Literal["value", "copy", "now", "today", "maker"], Any] | None = None


class ChildInfo(Said):
    """Lines; in a payload a list under ``name``."""

    name: str
    label: str
    min_lines: int = 0
    max_lines: int = 500
    unique: list[str] = Field(default_factory=list, description="no two lines alike in these fields")
    fields: list[FieldInfo]
    children: list[ChildInfo] = Field(default_factory=list)


class GenerateInfo(Said):
    """The form that this one can be generated from, and the lines taken and made."""

    form_id: str
    lines: str
    target_lines: str


class FormSchema(FormEntry):
    """``title``: fields that name a record; ``natural_key``: alike in all of these, probably a duplicate."""

    title: list[str] = Field(default_factory=list)
    natural_key: list[str] = Field(default_factory=list)
    number_field: str | None = None
    generate_from: list[GenerateInfo] = Field(default_factory=list)
    fields: list[FieldInfo]
    children: list[ChildInfo] = Field(default_factory=list)
    filter_schema: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of the filter of queryRecords"
    )
    sortable: list[str] = Field(default_factory=list, description="what queryRecords can sort by")
    default_sort: list[AppliedSort] = Field(default_factory=list)


class LineView(Said):
    """``values`` are exact (decimals as text); ``texts`` are what a person reads."""

    id: str
    values: dict[str, Any]
    texts: dict[str, str]
    children: dict[str, list[LineView]]


class RecordView(LineView):
    form_id: str
    label: str
    states: dict[str, bool] = Field(description="examined, invalid: those that the form has")
