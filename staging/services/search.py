"""Query Framework over operations: a person's or agent's own, the whole tenant's for an operator or the ERP (I8)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from staging.contracts.error import ErrorCode, Wire
from staging.contracts.moment import Moment
from staging.contracts.query import AppliedSort, QueryRequest, QueryResult
from staging.domain.errors import FieldProblem, invalid
from staging.domain.identity import Actor, ActorKind
from staging.domain.query import plan
from staging.services.view import view_of
from staging.storage import search
from staging.storage.unit_of_work import QueueStore

_DEFAULT_SORT = (AppliedSort(field="createdAt", direction="DESC"),)


class OperationFilter(Wire):
    """All given conditions hold. ``user`` is for operators; times are UTC, ``createdTo`` exclusive."""

    status: list[str] = Field(default_factory=list, max_length=20)
    code: list[Annotated[int, Field(ge=0, le=999)]] = Field(default_factory=list, max_length=40)
    form_id: list[str] = Field(default_factory=list, max_length=50)
    op_type: list[str] = Field(default_factory=list, max_length=20)
    user: list[str] = Field(default_factory=list, max_length=50)
    conversation_id: str = ""
    preparation_id: str = ""
    created_from: Moment | None = None
    created_to: Moment | None = None


class SearchService:
    def __init__(self, store: QueueStore) -> None:
        self._store = store

    def query(self, actor: Actor, request: QueryRequest) -> QueryResult:
        """Raises field_unknown/field_invalid for a filter that is not ``OperationFilter``, and what ``plan`` raises."""
        steps = plan(request, search.SORTABLE, "id", _DEFAULT_SORT, actor.locale)
        wanted = self._filter(actor, request)
        with self._store.read() as connection:
            found, total = search.query(connection, actor.tenant, wanted, steps)
        return QueryResult(
            items=[view_of(o, actor.locale).to_wire() for o in found[: steps.size]],
            page=steps.page(len(found), total),
            applied_sort=list(steps.sort),
            warnings=list(steps.warnings),
        )

    def _filter(self, actor: Actor, request: QueryRequest) -> search.Conditions:
        try:
            given = OperationFilter.model_validate(request.filter)
        except ValidationError as error:
            raise invalid([_problem(dict(entry)) for entry in error.errors()]) from None
        values = given.model_dump()
        if actor.kind not in (ActorKind.OPERATOR, ActorKind.SERVICE):
            values["user"] = [actor.user_id]
        return search.Conditions(**values)


def _problem(entry: dict[str, object]) -> FieldProblem:
    location = entry["loc"]
    path = "filter." + ".".join(str(p) for p in location) if isinstance(location, tuple) else "filter"
    if entry["type"] == "extra_forbidden":
        return FieldProblem(path, ErrorCode.FIELD_UNKNOWN)
    reason = {"zh": f"值不合法（{entry['type']}）", "en": str(entry["msg"])}
    return FieldProblem(path, ErrorCode.FIELD_INVALID, reason)
