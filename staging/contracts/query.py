"""The Query Framework's request and result (CONTRACT section 5), one shape for forms, operations and domain queries."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from staging.contracts.error import Wire

DEFAULT_SIZE = 20
MAX_SIZE = 200


class PageRequest(Wire):
    """``number`` from 1. A ``size`` above 200 is clamped, with a warning. Limits are checked by ``domain.query``."""

    number: int = Field(default=1, json_schema_extra={"minimum": 1})
    size: int = Field(
        default=DEFAULT_SIZE,
        json_schema_extra={"minimum": 1},
        description=f"at most {MAX_SIZE}; more is clamped with a warning",
    )


class SortKey(Wire):
    field: str
    direction: str = Field(default="ASC", json_schema_extra={"enum": ["ASC", "DESC"]})


class Paging(Wire):
    """What every query takes besides its filter."""

    page: PageRequest = PageRequest()
    sort: list[SortKey] = Field(default_factory=list, max_length=10)


class QueryRequest(Paging):
    """``filter``: per form, see its ``filterSchema``; empty means all that the caller may see."""

    filter: dict[str, Any] = Field(default_factory=dict)


class AppliedSort(Wire):
    field: str
    direction: Literal["ASC", "DESC"]


class PageInfo(Wire):
    """``total`` is null where counting would cost too much; ``has_more`` is always true to the data."""

    number: int
    size: int
    total: int | None
    has_more: bool


class QueryWarning(Wire):
    code: str
    message: str


class Paged(Wire):
    """``applied_sort`` is what really applied, public names, the unique id last."""

    page: PageInfo
    applied_sort: list[AppliedSort]
    warnings: list[QueryWarning] = []


class QueryResult(Paged):
    items: list[dict[str, Any]]


class QueryInfo(Wire):
    """A registered domain query, in the asker's language. ``filter_schema`` and ``row_schema`` are JSON Schema.

    ``sortable``: public names, the unique one last.
    """

    name: str
    label: str
    description: str
    filter_schema: dict[str, Any]
    row_schema: dict[str, Any]
    sortable: list[str]
    default_sort: list[AppliedSort]
