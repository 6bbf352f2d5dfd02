"""Query Framework over operations (one's own; the whole tenant's for an operator or the ERP, I8) and over "my AI
todos"."""

from __future__ import annotations

from staging.contracts.operation_query import (
    OperationPage,
    OperationQuery,
    TodoItem,
    TodoPage,
    TodoQuery,
)
from staging.contracts.query import AppliedSort
from staging.domain.identity import Actor, ActorKind
from staging.domain.ports import ErpAdapter
from staging.domain.query import plan
from staging.services.access import approvable
from staging.services.view import view_of
from staging.storage import search
from staging.storage.unit_of_work import QueueStore

_NEWEST = (AppliedSort(field="createdAt", direction="DESC"),)
_WAITING_FIRST = (AppliedSort(field="group", direction="ASC"), *_NEWEST)


class SearchService:
    def __init__(self, store: QueueStore, adapter: ErpAdapter) -> None:
        self._store, self._adapter = store, adapter

    def query(self, actor: Actor, request: OperationQuery) -> OperationPage:
        """Raises what ``plan`` raises."""
        steps = plan(request, search.SORTABLE, "id", _NEWEST, actor.locale)
        values = request.filter.model_dump()
        if actor.kind not in (ActorKind.OPERATOR, ActorKind.SERVICE):
            values["user"] = [actor.user_id]
        with self._store.read() as connection:
            found, total = search.query(connection, actor.tenant, search.Conditions(**values), steps)
        return OperationPage(
            items=[view_of(o, actor.locale) for o in found[: steps.size]],
            page=steps.page(len(found), total),
            applied_sort=list(steps.sort),
            warnings=list(steps.warnings),
        )

    def todos(self, actor: Actor, request: TodoQuery) -> TodoPage:
        """What waits for the actor, runs for them, or ended. Raises what ``plan`` raises."""
        steps = plan(request, ("group", *search.SORTABLE), "id", _WAITING_FIRST, actor.locale)
        values = request.filter.model_dump()
        groups = values.pop("group")
        with self._store.read() as connection:
            mine = search.Todos(
                actor.user_id,
                approvable(connection, actor, self._adapter),
                groups,
                search.Conditions(**values),
            )
            found, total = search.todos(connection, actor.tenant, mine, steps)
        return TodoPage(
            items=[
                TodoItem(**dict(view_of(o, actor.locale)), group=group) for o, group in found[: steps.size]
            ],
            page=steps.page(len(found), total),
            applied_sort=list(steps.sort),
            warnings=list(steps.warnings),
        )
