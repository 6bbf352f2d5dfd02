"""Operations: look, wait, list, and what people, operators and the ERP do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body, Query
from pydantic import Field

from staging.api.body import Nothing
from staging.api.context import ActorDep, GuardedRoute, ServicesDep
from staging.api.errors import RESPONSES
from staging.contracts.error import Wire
from staging.contracts.operation import OperationView, PrefillView, TodoView
from staging.contracts.operation_query import OperationPage, OperationQuery, TodoPage, TodoQuery
from staging.contracts.preparation import ConfirmRequest, Preparation
from staging.domain.operation import Operation
from staging.services.view import prefill_of, view_of

router = APIRouter(prefix="/v1", tags=["operations"], route_class=GuardedRoute, responses=RESPONSES)

_QUERY = {
    "filter": {"status": ["pending"], "formId": ["purchase_order"], "createdFrom": "2026-11-01T00:00:00Z"},
    "page": {"number": 1, "size": 20},
    "sort": [{"field": "createdAt", "direction": "DESC"}],
}
_TODO_QUERY = {
    "filter": {"group": ["waiting"], "formId": ["outsource_order"]},
    "page": {"number": 1, "size": 20},
}
NoBody = Annotated[Nothing | None, Body()]


class Reason(Wire):
    """Why; shown to the maker."""

    reason: str = Field(default="", examples=["客户改了主意"])


class Completion(Wire):
    """The record a 103 became in the ERP, or why it did not. Exactly one of the two."""

    result_bill_id: str = Field(default="", examples=["01a22bfb8282d32e333342d93513c8af"])
    error: str = ""


@router.post("/operations/query", operation_id="queryOperations")
def query_operations(
    request: Annotated[OperationQuery, Body(examples=[_QUERY])], actor: ActorDep, services: ServicesDep
) -> OperationPage:
    """Query Framework over operations: one's own, or the tenant's for an operator."""
    return services.search.query(actor, request)


@router.get("/operations/{op_id}", operation_id="getOperation")
def get_operation(op_id: str, actor: ActorDep, services: ServicesDep) -> OperationView:
    """All of one operation."""
    return view_of(services.inspect.get(actor, op_id), actor.locale)


@router.post("/operations/{op_id}/cancel", operation_id="cancelOperation")
def cancel(
    op_id: str, actor: ActorDep, services: ServicesDep, request: Annotated[Reason | None, Body()] = None
) -> OperationView:
    """Stop what no worker has yet."""
    return view_of(services.control.cancel(actor, op_id, request.reason if request else ""), actor.locale)


@router.post("/operations/{op_id}/retry", operation_id="retryOperation")
def retry(op_id: str, actor: ActorDep, services: ServicesDep, _: NoBody = None) -> OperationView:
    """423, 500 or 504 once more, with fresh attempts."""
    return view_of(services.control.retry(actor, op_id), actor.locale)


@router.post("/operations/{op_id}/approve", operation_id="approveOperation")
def approve(op_id: str, actor: ActorDep, services: ServicesDep, _: NoBody = None) -> OperationView:
    """A second person's yes to a 104."""
    return view_of(services.control.approve(actor, op_id), actor.locale)


@router.post("/operations/{op_id}/reject", operation_id="rejectOperation")
def reject(
    op_id: str, actor: ActorDep, services: ServicesDep, request: Annotated[Reason | None, Body()] = None
) -> OperationView:
    """A second person's no to a 104."""
    return view_of(services.control.reject(actor, op_id, request.reason if request else ""), actor.locale)


@router.get("/operations/{op_id}/prefill", operation_id="getOperationPrefill")
def prefill(op_id: str, actor: ActorDep, services: ServicesDep) -> PrefillView:
    """What the ERP's native form opens with, for ``/form/{formId}?staging={opId}``."""
    return prefill_of(services.inspect.prefill(actor, op_id))


@router.post("/operations/{op_id}/revert", operation_id="revertOperation")
def revert(op_id: str, actor: ActorDep, services: ServicesDep, _: NoBody = None) -> Preparation:
    """Prepare the inverse of an executed operation; nothing changes before it is confirmed."""
    return services.revert.revert(actor, op_id)


@router.post("/operations/{op_id}/restage", operation_id="restageOperation")
def restage(
    op_id: str,
    actor: ActorDep,
    services: ServicesDep,
    request: Annotated[ConfirmRequest | None, Body()] = None,
) -> Preparation:
    """Prepare a failed operation once more, on the record as it is now; nothing changes before it is confirmed."""
    return services.restage.operation(actor, op_id, request or ConfirmRequest())


@router.post("/operations/{op_id}/complete", operation_id="completeOperation")
def complete(op_id: str, request: Completion, actor: ActorDep, services: ServicesDep) -> OperationView:
    """The ERP's callback for a 103."""
    done = services.control.complete(actor, op_id, result_bill_id=request.result_bill_id, error=request.error)
    return view_of(done, actor.locale)


@router.get("/todos", operation_id="getTodos")
def todos(
    actor: ActorDep, services: ServicesDep, limit: Annotated[int, Query(ge=1, le=100)] = 50
) -> TodoView:
    """ "My AI todos": what waits for me, then what runs, then what ended lately."""
    found = services.inspect.todos(actor)

    def views(operations: Sequence[Operation]) -> list[OperationView]:
        return [view_of(o, actor.locale) for o in operations[:limit]]

    return TodoView(waiting=views(found.waiting), running=views(found.running), recent=views(found.recent))


@router.post("/todos/query", operation_id="queryTodos")
def query_todos(
    request: Annotated[TodoQuery, Body(examples=[_TODO_QUERY])], actor: ActorDep, services: ServicesDep
) -> TodoPage:
    """Query Framework over "my AI todos"; unless another sort is asked, what waits for me comes first."""
    return services.search.todos(actor, request)
