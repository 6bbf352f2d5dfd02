"""Revert: prepare the change that takes an executed one back. Nothing happens before a person confirms it."""

from __future__ import annotations

from pydantic import ValidationError

from staging.contracts.preparation import Preparation, PrepareRequest, Preview
from staging.contracts.status import Status
from staging.domain.errors import rule
from staging.domain.identity import Actor, ActorKind
from staging.domain.inverse import inverse_of, needs_current
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter
from staging.services.access import moved_on, require_kind, require_maker
from staging.services.inspect import InspectService
from staging.services.prepare import PrepareService


class RevertService:
    def __init__(self, inspect: InspectService, prepare: PrepareService, adapter: ErpAdapter) -> None:
        self._inspect, self._prepare, self._adapter = inspect, prepare, adapter

    def revert(self, actor: Actor, op_id: str) -> Preparation:
        """Prepare the inverse of one's own executed operation, in its conversation.

        Raises state_conflict for one that was not executed, business_rule where there is no inverse, forbidden for
        somebody else's, and what ``prepare`` raises: the record may have moved on since.
        """
        require_kind(actor, ActorKind.AGENT, ActorKind.PERSON)
        operation = self._inspect.get(actor, op_id)
        require_maker(actor, operation)
        code = operation.status_code
        if code is None or code.status is not Status.SUCCESS:
            raise moved_on(operation)
        preview = _preview_of(operation)
        current = {}
        if needs_current(operation, preview):
            current = self._adapter.lookup_record(actor, operation.form_id, operation.target_bill_id)
        item = inverse_of(operation, preview, self._adapter.catalogue, current)
        request = PrepareRequest(
            **item.model_dump(),
            conversation_id=operation.conversation_id,
            trace_id=operation.trace_id,
        )
        return self._prepare.prepare(actor, request)


def _preview_of(operation: Operation) -> Preview:
    """What was confirmed. A row of foreign SQL has none: then only changes of state can be taken back."""
    try:
        return Preview.model_validate_json(operation.preview_json or "")
    except ValidationError:
        if operation.op_type != "update":
            return Preview(
                title="", form_id=operation.form_id, form_label="", op_type=operation.op_type, op_label=""
            )
        raise rule(
            "该操作由其他程序直接写入，没有记录修改前的值，无法反向",
            "This row was written by another program; what was there before is not known, so it cannot be taken back",
        ) from None
