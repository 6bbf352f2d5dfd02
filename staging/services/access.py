"""Who may see and move which operation: one place for every door. What may not be seen does not exist (I8)."""

from __future__ import annotations

from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter, Route
from staging.storage import archive, operations, search

_LONGEST_ID = 64
_WHOLE_TENANT = {ActorKind.OPERATOR, ActorKind.SERVICE, ActorKind.SYSTEM}


def not_found() -> Refused:
    return Refused(ErrorCode.OPERATION_NOT_FOUND)


def moved_on(operation: Operation) -> Refused:
    """For an operation that is at a code which does not allow what was asked."""
    code = operation.status_code
    if operation.archived_at is not None:
        archived = {
            "zh": "操作已归档，只能查看",
            "en": "The operation is archived: it can only be looked at",
        }
        return Refused(ErrorCode.STATE_CONFLICT, text=archived)
    zh = f"操作当前为“{code.zh if code else operation.status}”，不能这样处理"
    en = f'The operation is at "{code.en if code else operation.status}", which does not allow this'
    return Refused(ErrorCode.STATE_CONFLICT, text={"zh": zh, "en": en})


def require_kind(actor: Actor, *kinds: ActorKind) -> None:
    """Raise forbidden unless the credential is of one of ``kinds``: an agent's can never confirm or approve (I10)."""
    if actor.kind not in kinds:
        raise Refused(ErrorCode.FORBIDDEN)


def require_maker(actor: Actor, operation: Operation) -> None:
    """Raise forbidden unless the operation is the actor's own."""
    if operation.maker != actor.user_id:
        raise Refused(ErrorCode.FORBIDDEN)


def route_of(operation: Operation) -> Route:
    """The route as the row states it."""
    return Route(
        command_type=operation.command_type,
        form_id=operation.form_id,
        module_id=operation.module_id,
        target_table=operation.target_table,
        op_type=operation.op_type,
        auto_execute=operation.auto_execute,
        requires_approval=operation.needs_approval,
    )


def may_approve(actor: Actor, operation: Operation, adapter: ErpAdapter) -> bool:
    """A second person with the grant, never the maker."""
    return (
        actor.kind is ActorKind.PERSON
        and operation.tenant == actor.tenant
        and operation.maker != actor.user_id
        and adapter.may_approve(actor, route_of(operation))
    )


def approvable(connection: Any, actor: Actor, adapter: ErpAdapter) -> list[Route]:
    """The kinds of other users' operations at 104 that the actor may approve."""
    if actor.kind is not ActorKind.PERSON:
        return []
    kinds = search.awaiting_approval(connection, actor.tenant, actor.user_id)
    return [kind for kind in kinds if adapter.may_approve(actor, kind)]


def fetch(connection: Any, actor: Actor, op_id: str, adapter: ErpAdapter) -> Operation:
    """Read the operation, also from the archive, if the actor may see it; raises operation_not_found otherwise, also
    for what cannot be an id (not every database would even take it as a value)."""
    if not op_id.isprintable() or len(op_id) > _LONGEST_ID:
        raise not_found()
    found = operations.get(connection, actor.tenant, op_id) or archive.get(connection, actor.tenant, op_id)
    return visible(actor, found, adapter)


def visible(actor: Actor, operation: Operation | None, adapter: ErpAdapter) -> Operation:
    """Return the operation if the actor may see it: their own; the tenant's for operators and the ERP; one that waits
    for their approval. Raises operation_not_found otherwise, as for an id that does not exist."""
    if operation is None or operation.tenant != actor.tenant:
        raise not_found()
    if actor.kind in _WHOLE_TENANT or operation.maker == actor.user_id:
        return operation
    concerned = operation.code == StatusCode.WAITING_APPROVAL or operation.approved_by == actor.user_id
    if concerned and may_approve(actor, operation, adapter):
        return operation
    raise not_found()
