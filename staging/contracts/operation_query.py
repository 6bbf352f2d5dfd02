"""The Query Framework over operations and over "my AI todos": typed filters, sortable fields, typed results."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from staging.contracts.error import Wire
from staging.contracts.moment import Moment
from staging.contracts.operation import OperationView
from staging.contracts.query import Paged, Paging, SortKey
from staging.contracts.status import LEGACY_STATUSES, Status

OperationField = Literal[
    "createdAt", "executedAt", "code", "status", "formId", "maker", "priority", "attempt"
]
"""What operations can be sorted by, besides ``id``."""
TodoGroup = Literal["waiting", "running", "recent"]
"""Waits for me (103 of mine, 104 that I may approve); of mine not finished; of mine ended."""


def _names(*names: str) -> dict[str, Any]:
    return {"enum": list(names)}


class OperationSort(SortKey):
    field: str = Field(json_schema_extra=_names(*get_args(OperationField), "id"))


class TodoSort(SortKey):
    field: str = Field(json_schema_extra=_names("group", *get_args(OperationField), "id"))


_Status = Annotated[str, Field(json_schema_extra=_names(*Status, *sorted(LEGACY_STATUSES)))]
_Code = Annotated[int, Field(ge=0, le=999)]
_Name = Annotated[str, Field(max_length=200)]


class _Filter(Wire):
    """All given conditions hold, each by any of its values; an empty one does not restrict."""

    code: list[_Code] = Field(default_factory=list, max_length=40)
    form_id: list[_Name] = Field(default_factory=list, max_length=50)
    op_type: list[_Name] = Field(default_factory=list, max_length=20)
    conversation_id: _Name = ""
    preparation_id: _Name = ""
    created_from: Moment | None = Field(default=None, description="included")
    created_to: Moment | None = Field(default=None, description="not included")


class OperationFilter(_Filter):
    status: list[_Status] = Field(
        default_factory=list,
        max_length=20,
        description="the words after fail stand only in rows older than this product",
    )
    user: list[_Name] = Field(default_factory=list, max_length=50, description="makers; for operators")


class TodoFilter(_Filter):
    group: list[TodoGroup] = Field(default_factory=list, max_length=3)


class OperationQuery(Paging):
    filter: OperationFilter = OperationFilter()
    sort: list[OperationSort] = Field(default_factory=list, max_length=10)  # type: ignore[assignment]


class TodoQuery(Paging):
    filter: TodoFilter = TodoFilter()
    sort: list[TodoSort] = Field(default_factory=list, max_length=10)  # type: ignore[assignment]


class OperationPage(Paged):
    items: list[OperationView]


class TodoItem(OperationView):
    group: TodoGroup


class TodoPage(Paged):
    items: list[TodoItem]
