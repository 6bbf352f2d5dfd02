"""The catalogue and the ERP's data, read-only: what may be prepared, and of what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query

from staging.api.context import ActorDep, GuardedRoute, ServicesDep
from staging.api.errors import RESPONSES
from staging.contracts.catalogue import FormEntry, FormSchema, RecordView
from staging.contracts.error import Wire
from staging.contracts.query import QueryRequest, QueryResult

router = APIRouter(prefix="/v1", tags=["forms"], route_class=GuardedRoute, responses=RESPONSES)
_QUERY = {
    "filter": {"invalid": False, "name": {"contains": "文具"}, "creditLimit": {"from": "10000"}},
    "page": {"number": 1, "size": 20},
    "sort": [{"field": "createdAt", "direction": "DESC"}],
}
_Q = Annotated[str, Query(max_length=100, description="words to look for; empty: all")]


class Me(Wire):
    """Who the credential is."""

    user_id: str
    brands_id: str
    subsidiary_id: str
    kind: str
    locale: str
    forms: list[FormEntry]


@router.get("/me", operation_id="getMe", response_model=Me, response_model_exclude_unset=True)
def me(actor: ActorDep, services: ServicesDep) -> dict[str, Any]:
    """User, tenant, granted forms and locale of the credential."""
    return {
        "user_id": actor.user_id,
        "brands_id": actor.tenant.brands_id,
        "subsidiary_id": actor.tenant.subsidiary_id,
        "kind": actor.kind.value,
        "locale": actor.locale,
        "forms": services.databases.adapter.forms(actor, ""),
    }


@router.get(
    "/forms", operation_id="findForms", response_model=list[FormEntry], response_model_exclude_unset=True
)
def find_forms(actor: ActorDep, services: ServicesDep, q: _Q = "") -> list[dict[str, Any]]:
    """Forms the caller may act on, by words of their id or label."""
    return services.databases.adapter.forms(actor, q)


@router.get(
    "/forms/{form_id}", operation_id="getForm", response_model=FormSchema, response_model_exclude_unset=True
)
def get_form(form_id: str, actor: ActorDep, services: ServicesDep) -> dict[str, Any]:
    """A form's schema for rendering."""
    return services.databases.adapter.form_schema(actor, form_id)


@router.get("/forms/{form_id}/fields/{field}/options", operation_id="getFieldOptions")
def field_options(
    form_id: str,
    field: str,
    actor: ActorDep,
    services: ServicesDep,
    q: _Q = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> QueryResult:
    """Choices of a reference field."""
    return services.databases.adapter.field_options(actor, form_id, field, q, page)


@router.post("/forms/{form_id}/query", operation_id="queryRecords")
def query_records(
    form_id: str,
    request: Annotated[QueryRequest, Body(examples=[_QUERY])],
    actor: ActorDep,
    services: ServicesDep,
) -> QueryResult:
    """Query Framework over a form's records."""
    return services.databases.adapter.query_records(actor, form_id, request)


@router.get(
    "/forms/{form_id}/records/{record:path}",
    operation_id="getRecord",
    response_model=RecordView,
    response_model_exclude_unset=True,
)
def get_record(form_id: str, record: str, actor: ActorDep, services: ServicesDep) -> dict[str, Any]:
    """One record, by id or document number."""
    return services.databases.adapter.lookup_record(actor, form_id, record)
