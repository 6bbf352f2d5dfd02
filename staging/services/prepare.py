"""Prepare: what an agent (or a person) may do. Reads the ERP, writes nothing but the snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import Preparation, PrepareItem, PrepareRequest, PreviewWarning
from staging.domain.errors import FieldProblem, Refused, invalid
from staging.domain.identity import Actor, ActorKind, new_id
from staging.domain.intake import check_value
from staging.domain.ports import Clock, ErpAdapter, PreparationStore, Prepared
from staging.services.access import require_kind
from staging.services.snapshot import Snapshot, SnapshotItem, load
from staging.settings import Settings

_SINGLE_FIELDS = ("form_id", "op_type", "command_type", "record", "payload", "source_ref")


class PrepareService:
    def __init__(
        self, adapter: ErpAdapter, store: PreparationStore, settings: Settings, clock: Clock
    ) -> None:
        self._adapter, self._store, self._settings, self._clock = adapter, store, settings, clock

    def prepare(self, actor: Actor, request: PrepareRequest) -> Preparation:
        """Validate, normalize and show; returns the preview. Raises what the adapter refuses, ``unavailable``
        without Redis."""
        require_kind(actor, ActorKind.AGENT, ActorKind.PERSON)
        items = request.items or [self._single(request)]
        if request.items and any(getattr(request, name) for name in _SINGLE_FIELDS):
            reason = {
                "zh": "items 与单个操作的字段不能同时给出",
                "en": "give either items or a single operation, not both",
            }
            raise invalid([FieldProblem("items", ErrorCode.FIELD_INVALID, reason)])
        replaced = self._own(actor, request.supersedes) if request.supersedes else None
        snapshot = Snapshot(
            preparation_id=new_id(),
            tenant=actor.tenant,
            user_id=actor.user_id,
            conversation_id=request.conversation_id,
            trace_id=request.trace_id,
            expires_at=self._clock() + timedelta(seconds=self._settings.preparation_ttl_s),
            items=tuple(self.prepare_item(actor, item) for item in items),
        )
        self._save(snapshot)
        if replaced is not None:
            self._save(replace(replaced, superseded_by=snapshot.preparation_id))
        return snapshot.to_wire(actor.locale)

    def prepare_item(self, actor: Actor, item: PrepareItem) -> SnapshotItem:
        """One operation, checked for size and characters before the adapter sees it."""
        limits = self._settings.payload_limits
        item = item.model_copy(
            update={
                "payload": check_value(item.payload, **limits),
                "source_ref": None if item.source_ref is None else check_value(item.source_ref, **limits),
            }
        )
        if actor.kind is not ActorKind.PERSON:  # only a person overrides the duplicate guard, on the card
            item = item.model_copy(update={"allow_duplicate": False})
        prepared, twin = self._with_twin(actor, item)
        # Text copied from the ERP may hold what no caller may send; better refused now than after the confirm.
        check_value(prepared.payload, **limits)
        return SnapshotItem(item, prepared, twin)

    def _with_twin(self, actor: Actor, item: PrepareItem) -> tuple[Prepared, dict[str, Any] | None]:
        """What is prepared and, for a probable duplicate, what it duplicates: shown as a warning, refused at confirm
        unless the person insists."""
        try:
            return self._adapter.prepare(actor, item), None
        except Refused as refusal:
            if refusal.code is not ErrorCode.POSSIBLE_DUPLICATE:
                raise
            prepared = self._adapter.prepare(actor, item.model_copy(update={"allow_duplicate": True}))
            warnings = prepared.preview.warnings
            if not any(w.code == refusal.code for w in warnings):
                told = PreviewWarning(code=refusal.code.value, message=refusal.message(actor.locale))
                preview = prepared.preview.model_copy(update={"warnings": [*warnings, told]})
                prepared = replace(prepared, preview=preview)
            return prepared, {
                "record": refusal.params.get("record", ""),
                "candidates": list(refusal.candidates),
            }

    def get(self, actor: Actor, preparation_id: str) -> Preparation:
        """The preview again."""
        return self._own(actor, preparation_id).to_wire(actor.locale)

    def drop(self, actor: Actor, preparation_id: str) -> None:
        """Forget a preparation; it can no longer be confirmed."""
        self._own(actor, preparation_id)
        self._store.drop(preparation_id)

    def snapshot(self, actor: Actor, preparation_id: str) -> Snapshot:
        """The actor's own live snapshot. Raises preparation_not_found_or_expired or preparation_superseded."""
        snapshot = self._own(actor, preparation_id)
        if snapshot.superseded_by:
            raise Refused(ErrorCode.PREPARATION_SUPERSEDED)
        return snapshot

    def key(self, preparation_id: str) -> str:
        """The key of Redis that its snapshot is kept under."""
        return self._store.key(preparation_id)

    def _own(self, actor: Actor, preparation_id: str) -> Snapshot:
        stored = self._store.get(preparation_id)
        snapshot = load(stored) if stored else None
        if snapshot is None or not snapshot.belongs_to(actor) or snapshot.expires_at <= self._clock():
            raise Refused(ErrorCode.PREPARATION_NOT_FOUND_OR_EXPIRED)
        return snapshot

    def _save(self, snapshot: Snapshot) -> None:
        ttl_s = max(1, int((snapshot.expires_at - self._clock()).total_seconds()))
        self._store.put(snapshot.preparation_id, snapshot.dump(), ttl_s)

    @staticmethod
    def _single(request: PrepareRequest) -> PrepareItem:
        return PrepareItem(**{name: getattr(request, name) for name in PrepareItem.model_fields})
