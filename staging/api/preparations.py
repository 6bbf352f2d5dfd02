"""Prepare, look again, drop, confirm."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from staging.api.context import ActorDep, GuardedRoute, ServicesDep
from staging.api.errors import RESPONSES
from staging.contracts.error import Wire
from staging.contracts.operation import OperationView
from staging.contracts.preparation import ConfirmRequest, Preparation, PrepareRequest
from staging.services.view import view_of

router = APIRouter(
    prefix="/v1/preparations", tags=["preparations"], route_class=GuardedRoute, responses=RESPONSES
)


class Confirmed(Wire):
    operations: list[OperationView]


_ONE = {
    "formId": "customer",
    "opType": "create",
    "payload": {"name": "华彩文具有限公司", "creditLimit": "50000.00"},
}
_SEVERAL = {
    "conversationId": "c-1",
    "items": [
        {"formId": "quotation", "opType": "examine", "record": "BJD202611001"},
        {"commandType": "erp.customer.update", "record": "KH0001", "payload": {"phone": "13800000000"}},
    ],
}
_EDITED = {"edits": {"creditLimit": "60000.00"}}


@router.post("", operation_id="prepare")
def prepare(
    request: Annotated[PrepareRequest, Body(examples=[_ONE, _SEVERAL])],
    actor: ActorDep,
    services: ServicesDep,
) -> Preparation:
    """Validate a change and show it. Writes no business data."""
    return services.prepare.prepare(actor, request)


@router.get("/{preparation_id}", operation_id="getPreparation")
def get_preparation(preparation_id: str, actor: ActorDep, services: ServicesDep) -> Preparation:
    """The preview again."""
    return services.prepare.get(actor, preparation_id)


@router.delete("/{preparation_id}", status_code=204, operation_id="dropPreparation")
def drop_preparation(preparation_id: str, actor: ActorDep, services: ServicesDep) -> Response:
    """Drop a preparation: it can no longer be confirmed."""
    services.prepare.drop(actor, preparation_id)
    return Response(status_code=204)


@router.post("/{preparation_id}/confirm", status_code=202, operation_id="confirmPreparation")
def confirm(
    preparation_id: str,
    actor: ActorDep,
    services: ServicesDep,
    request: Annotated[ConfirmRequest | None, Body(examples=[{}, _EDITED])] = None,
) -> Confirmed:
    """A person's yes. Idempotent: a repeat returns the same operations."""
    confirmed = services.confirm.confirm(actor, preparation_id, request)
    return Confirmed(operations=[view_of(o, actor.locale) for o in confirmed])


@router.post("/{preparation_id}/restage", operation_id="restagePreparation")
def restage(
    preparation_id: str,
    actor: ActorDep,
    services: ServicesDep,
    request: Annotated[ConfirmRequest | None, Body(examples=[{}, _EDITED])] = None,
) -> Preparation:
    """The same change on the record as it is now, with edits: a new preparation that takes this one's place."""
    return services.restage.preparation(actor, preparation_id, request or ConfirmRequest())
