"""The ERP's registered domain queries: what a form's own records do not answer."""

from __future__ import annotations

from fastapi import APIRouter

from staging.api.context import ActorDep, GuardedRoute, ServicesDep
from staging.api.errors import RESPONSES
from staging.contracts.query import QueryInfo, QueryRequest, QueryResult

router = APIRouter(prefix="/v1", tags=["queries"], route_class=GuardedRoute, responses=RESPONSES)


@router.get("/queries", operation_id="findQueries")
def find_queries(actor: ActorDep, services: ServicesDep) -> list[QueryInfo]:
    """Queries the caller may ask, with the schemas of their filters and rows."""
    return services.databases.adapter.queries(actor)


@router.post("/queries/{name}", operation_id="runQuery")
def run_query(name: str, request: QueryRequest, actor: ActorDep, services: ServicesDep) -> QueryResult:
    """Query Framework over a registered query."""
    return services.databases.adapter.run_query(actor, name, request)
