"""Restage: what was prepared, or what failed, looked at once more as things are now. Nothing happens before a person
confirms it (I11: after every refusal there is a way on, in one step)."""

from __future__ import annotations

from staging.contracts.preparation import ConfirmRequest, Preparation, PrepareItem, PrepareRequest, Preview
from staging.contracts.status import Status
from staging.domain.identity import Actor, ActorKind
from staging.domain.intake import parse_json, require_object
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter, Prepared
from staging.services.access import moved_on, require_kind, require_maker, route_of
from staging.services.edits import edited, edits_of
from staging.services.inspect import InspectService
from staging.services.prepare import PrepareService
from staging.services.snapshot import SnapshotItem
from staging.settings import Settings

_NO_PREVIEW = Preview(title="", form_id="", form_label="", op_type="", op_label="")


class RestageService:
    def __init__(
        self, inspect: InspectService, prepare: PrepareService, adapter: ErpAdapter, settings: Settings
    ) -> None:
        self._inspect, self._prepare, self._adapter, self._settings = inspect, prepare, adapter, settings

    def preparation(self, actor: Actor, preparation_id: str, request: ConfirmRequest) -> Preparation:
        """The same change on the record as it is now, with the person's edits; takes the old one's place.

        Raises preparation_not_found_or_expired, preparation_superseded and what ``prepare`` raises.
        """
        require_kind(actor, ActorKind.AGENT, ActorKind.PERSON)
        snapshot = self._prepare.snapshot(actor, preparation_id)
        edits = edits_of(request, len(snapshot.items))
        items = [
            edited(self._adapter, entry, edits.get(i, {}), allow_duplicate=request.allow_duplicate)
            for i, entry in enumerate(snapshot.items)
        ]
        return self._prepare.prepare(
            actor,
            PrepareRequest(
                items=items,
                conversation_id=snapshot.conversation_id,
                trace_id=snapshot.trace_id,
                supersedes=preparation_id,
            ),
        )

    def operation(self, actor: Actor, op_id: str, request: ConfirmRequest) -> Preparation:
        """One's own operation that has failed, as a new preparation in the same conversation.

        Raises state_conflict for one that has not failed, forbidden for somebody else's, and what ``prepare`` raises.
        """
        require_kind(actor, ActorKind.AGENT, ActorKind.PERSON)
        operation = self._inspect.get(actor, op_id)
        require_maker(actor, operation)
        code = operation.status_code
        if code is None or code.status is not Status.FAIL:
            raise moved_on(operation)
        edits = edits_of(request, 1).get(0, {})
        item = edited(self._adapter, self._entry(operation), edits, allow_duplicate=request.allow_duplicate)
        return self._prepare.prepare(
            actor,
            PrepareRequest(
                items=[item], conversation_id=operation.conversation_id, trace_id=operation.trace_id
            ),
        )

    def _entry(self, operation: Operation) -> SnapshotItem:
        """The row as if it had just been prepared; its payload may be anybody's, so it is read strictly."""
        payload, source, limits = (
            operation.payload_json,
            operation.source_ref_json,
            self._settings.payload_limits,
        )
        prepared = Prepared(
            route=route_of(operation),
            payload=require_object(parse_json(payload, **limits)) if payload else {},
            target_bill_id=operation.target_bill_id,
            source_ref=require_object(parse_json(source, **limits)) if source else None,
            pins={},
            target_version="",
            preview=_NO_PREVIEW,
        )
        item = PrepareItem(
            form_id=operation.form_id,
            op_type=operation.op_type,
            command_type=operation.command_type,
            allow_duplicate=operation.allow_duplicate,
        )
        return SnapshotItem(item, prepared)
