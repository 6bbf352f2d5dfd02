"""What tools take, typed; the schema of these is the schema of the tools."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from staging.contracts.error import ErrorCode, Wire
from staging.contracts.query import SortKey
from staging.domain.complaints import problems_of
from staging.domain.errors import FieldProblem, invalid

_EXACT_DIGITS = 15  # as many as any decimal keeps through a binary float
MAX_ROWS = 50

FormId = Annotated[str, Field(min_length=1, max_length=100, description="formId as find_forms gives it")]
Record = Annotated[str, Field(min_length=1, max_length=200, description="the record's id or document number")]
OperationId = Annotated[
    str, Field(min_length=1, max_length=64, description="operationId, not a document number")
]
PreparationId = Annotated[str, Field(min_length=1, max_length=64)]
Words = Annotated[str, Field(max_length=100, description="words to look for; leave out for all")]
Supersedes = Annotated[
    str,
    Field(max_length=64, description="preparationId that this one replaces, when the user wanted it changed"),
]
Conversation = Annotated[
    str, Field(max_length=100, description="id of this conversation, if the host has one")
]


class FindForms(Wire):
    q: Words = ""


class DescribeForm(Wire):
    form_id: FormId


class FieldOptions(Wire):
    form_id: FormId
    field: str = Field(
        min_length=1,
        max_length=200,
        description="a field of the form, or child.field, e.g. customer or lines.product",
    )
    q: Words = ""
    page: int = Field(default=1, ge=1, le=1_000_000)


class Page(Wire):
    number: int = Field(default=1, ge=1, le=1_000_000)
    size: int = Field(default=20, ge=1, le=MAX_ROWS)


class Sort(SortKey):
    direction: str = Field(default="ASC", json_schema_extra={"enum": ["ASC", "DESC"]})


class QueryRecords(Wire):
    form_id: FormId
    filter: dict[str, Any] = Field(
        default_factory=dict,
        description="as the form's filterSchema says (describe_form): field → a value (equal), a list (any of),"
        " {from, to} (both included; numbers, dates), {contains: text} (texts, ignoring case) or null (empty)."
        " References by id, number or exact name. All must hold.",
    )
    page: Page = Page()
    sort: list[Sort] = Field(default_factory=list, max_length=10, description="sortable fields only")


class AskQuery(Wire):
    """Envelope of a registered query; the schema of ``filter`` is the query's own."""

    filter: dict[str, Any] = Field(default_factory=dict)
    page: Page = Page()
    sort: list[Sort] = Field(default_factory=list, max_length=10, description="sortable fields only")


class LookupRecord(Wire):
    form_id: FormId
    record: Record


class Change(Wire):
    """One operation, as preview_change takes it."""

    form_id: FormId
    op_type: str = Field(
        min_length=1,
        max_length=50,
        description="an opType that find_forms lists for the form, e.g. create, examine",
    )
    record: str = Field(
        default="",
        max_length=200,
        description="the record acted on, by id or document number; not for create, generate",
    )
    payload: dict[str, Any] = Field(
        default_factory=dict,
        description="create, update: field → value, and child lines as a list under the child's name; names as"
        ' describe_form gives them. Amounts as text, e.g. "12.50". In an update only what changes.',
    )
    source_ref: dict[str, Any] | None = Field(
        default=None,
        description='generate: {"formId", "record", "lines": [{"id", "quantity"?}]}, the lines taken from the source',
    )
    depends_on: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list,
        max_length=50,
        description='operationIds it waits for, or "#1" for the first operation of this same call',
    )
    not_before: datetime | None = Field(default=None, description="earliest time of execution, with its zone")


class PreviewChange(Change):
    """One operation; with ``also`` several, shown as one preview and confirmed together, all or none."""

    also: list[Change] = Field(
        default_factory=list,
        max_length=19,
        description="further operations to be confirmed together with this one",
    )
    conversation_id: Conversation = ""
    supersedes: Supersedes = ""


class PrepareCommand(Wire):
    """Envelope of a registered command; the schema of ``payload`` is the command's own."""

    payload: dict[str, Any] = Field(default_factory=dict)
    record: str = Field(
        default="",
        max_length=200,
        description="the record the command acts on, by id or document number, if it needs one",
    )
    conversation_id: Conversation = ""
    supersedes: Supersedes = ""


class OperationStatus(Wire):
    operation_id: OperationId
    wait_seconds: float = Field(
        default=0, ge=0, le=30, description="wait up to so long for its end, or until it waits for a person"
    )


class MyTodos(Wire):
    limit: int = Field(default=10, ge=1, le=MAX_ROWS, description="of each list")


class CancelOperation(Wire):
    operation_id: OperationId
    reason: str = Field(default="", max_length=500, description="the user's reason, shown in the operation")


class ConfirmOperation(Wire):
    preparation_id: PreparationId


ArgumentsT = TypeVar("ArgumentsT", bound=Wire)


def read(model: type[ArgumentsT], given: Mapping[str, Any]) -> ArgumentsT:
    """``given`` as ``model``. Raises ValidationFailed with every bad argument, also for amounts a float has rounded."""
    problems = [
        FieldProblem(
            path,
            ErrorCode.FIELD_INVALID,
            {
                "zh": "数字位数过多，可能已失真，请以文本给出",
                "en": "a number of too many digits is not exact: give it as text",
            },
        )
        for path in _inexact(given, "")
    ]
    try:
        arguments = model.model_validate(given)
    except ValidationError as error:
        problems += problems_of(error.errors(include_url=False, include_input=False), whole="arguments")
        raise invalid(problems) from None
    if problems:
        raise invalid(problems)
    return arguments


def _inexact(value: Any, path: str) -> Iterator[str]:
    """Where a float stands that is not surely the decimal its sender wrote."""
    if isinstance(value, float):
        if (
            not math.isfinite(value)
            or len(Decimal(repr(value)).normalize().as_tuple().digits) > _EXACT_DIGITS
        ):
            yield path
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _inexact(below, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list):
        for position, below in enumerate(value):
            yield from _inexact(below, f"{path}[{position}]")
