"""The demo ERP's own forms, ``/form/{formId}``: opens prefilled by ``?staging=``, shows a record by ``?bill=``.

A real ERP has forms of its own and serves this address itself. The demo has none, so the API stands in where
the adapter can save a form (``ports.NativeForms``), and nowhere else. What is saved goes through the ERP (its
rules, its ledger), not through the queue; the page then calls ``complete`` like any other ERP.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse

from staging.api.body import StrictRoute
from staging.api.context import ActorDep, GuardedRoute, ServicesDep
from staging.api.pages.rendering import page
from staging.contracts.error import ErrorCode, Wire
from staging.domain.errors import Refused
from staging.domain.identity import ActorKind
from staging.domain.intake import check_value, parse_json, require_object
from staging.domain.ports import ErpAdapter, Execution, NativeForms
from staging.services.access import require_kind, route_of

_pages = APIRouter(route_class=StrictRoute, include_in_schema=False)
_saving = APIRouter(route_class=GuardedRoute, include_in_schema=False)


class Filled(Wire):
    """The form as the user filled it in, for the operation ``staging``."""

    staging: str
    values: dict[str, Any]
    allow_duplicate: bool = False


class Saved(Wire):
    """Id of the record it became."""

    result_bill_id: str


def install(app: FastAPI, adapter: ErpAdapter) -> None:
    """Serve the forms where the ERP behind ``adapter`` has no own ones."""
    if isinstance(adapter, NativeForms):
        app.include_router(_pages)
        app.include_router(_saving)


@_pages.get("/form/{form_id}", response_class=HTMLResponse)
def form_page(request: Request, form_id: str, staging: str = "", bill: str = "") -> HTMLResponse:
    """The form; its script reads ``staging`` or ``bill`` from the address."""
    del staging, bill
    return page(request, "native.html", form_id=form_id)


@_saving.post("/form/{form_id}")
def save_form(form_id: str, filled: Filled, actor: ActorDep, services: ServicesDep) -> Saved:
    """Save into the ERP what its user filled in, once per operation. The operation stays at 103 until ``complete``."""
    require_kind(actor, ActorKind.PERSON)
    operation = services.inspect.prefill(actor, filled.staging)
    native = services.databases.adapter
    if operation.form_id != form_id or not isinstance(native, NativeForms):
        raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": form_id})
    limits = services.settings.payload_limits
    source = operation.source_ref_json
    execution = Execution(
        op_id=operation.id,
        actor=actor,
        route=route_of(operation),
        target_bill_id=operation.target_bill_id,
        payload=check_value(filled.values, **limits),
        source_ref=require_object(parse_json(source, **limits)) if source else None,
        pins=None,
        target_version="",
        prepared=False,
        allow_duplicate=filled.allow_duplicate or operation.allow_duplicate,
    )
    return Saved(result_bill_id=native.save_form(operation.idempotency_key, execution))
