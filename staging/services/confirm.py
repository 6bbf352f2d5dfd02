"""Confirm: a person says yes, and only then a row exists. Idempotent by the unique key alone: no lock, no Redis needed
for a repeat (I2, I3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from staging import failpoints
from staging.contracts.error import ErrorCode
from staging.contracts.preparation import ConfirmRequest
from staging.contracts.status import StatusCode
from staging.domain.canonical import fingerprint, payload_hash
from staging.domain.errors import OpstageError, Refused
from staging.domain.identity import Actor, ActorKind, new_id
from staging.domain.intake import check_value, dump_json
from staging.domain.operation import NewOperation, Operation, Told
from staging.domain.ports import Clock, ErpAdapter
from staging.domain.seal import seal
from staging.services.access import not_found, require_kind, visible
from staging.services.edits import edited, edits_of
from staging.services.prepare import PrepareService
from staging.services.snapshot import Snapshot, SnapshotItem
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import archive, audit, confirming, operations
from staging.storage.unit_of_work import QueueStore, UnitOfWork


class ConfirmService:
    def __init__(
        self,
        store: QueueStore,
        prepare: PrepareService,
        adapter: ErpAdapter,
        teller: Teller,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._store, self._prepare, self._adapter = store, prepare, adapter
        self._teller, self._settings, self._clock = teller, settings, clock

    def confirm(
        self, actor: Actor, preparation_id: str, request: ConfirmRequest | None = None
    ) -> list[Operation]:
        """Insert the prepared operations and return them; a repeat or a race returns the same ones.

        Raises forbidden (not a person), preparation_not_found_or_expired, preparation_superseded, whatever validation
        of edits or the second look at permission and pins refuses, and idempotency_conflict for a repeat whose edits
        are not those that were confirmed.
        """
        require_kind(actor, ActorKind.PERSON)
        request = request or ConfirmRequest()
        try:
            confirmed, told = self._insert_confirmed(actor, preparation_id, request)
        except (OpstageError, operations.KeyTaken) as error:
            # A repeat's snapshot is gone, or what it shows has happened. A first one's is what decides.
            existing = self._confirmed(actor, preparation_id, request)
            if existing:
                return existing
            if isinstance(error, operations.KeyTaken):
                raise Refused(ErrorCode.IDEMPOTENCY_CONFLICT) from error
            raise
        failpoints.reached("W1", *(operation.id for operation in confirmed))
        # Where Redis is away just now the snapshot stays until its TTL; the key protects it.
        self._teller.committed(told, drop=[self._prepare.key(preparation_id)])
        return confirmed

    def _insert_confirmed(
        self, actor: Actor, preparation_id: str, request: ConfirmRequest
    ) -> tuple[list[Operation], list[Told]]:
        snapshot = self._as_confirmed(actor, self._prepare.snapshot(actor, preparation_id), request)
        rows = self._rows(actor, snapshot, _confirm_hash(snapshot.preparation_id, request))
        return self._store.transact(lambda unit: self._insert(unit, actor, rows))

    def _confirmed(self, actor: Actor, preparation_id: str, request: ConfirmRequest) -> list[Operation]:
        with self._store.read() as connection:
            found = operations.by_preparation(connection, actor.tenant, preparation_id)
            found += archive.by_preparation(connection, actor.tenant, preparation_id)
        found.sort(key=lambda operation: operation.flow_step)
        if any(o.maker != actor.user_id for o in found):
            raise Refused(ErrorCode.PREPARATION_NOT_FOUND_OR_EXPIRED)
        if (
            found
            and request != ConfirmRequest()
            and found[0].snapshot_hash != _confirm_hash(preparation_id, request)
        ):
            raise Refused(ErrorCode.IDEMPOTENCY_CONFLICT)
        return found

    def _as_confirmed(self, actor: Actor, snapshot: Snapshot, request: ConfirmRequest) -> Snapshot:
        """The snapshot with the person's edits, validated like any other; without edits, looked at once more."""
        edits = edits_of(request, len(snapshot.items))
        items = [
            self._reviewed(actor, item, edits.get(index, {}), request.allow_duplicate)
            for index, item in enumerate(snapshot.items)
        ]
        return replace(snapshot, items=tuple(items))

    def _reviewed(
        self, actor: Actor, item: SnapshotItem, edits: dict[str, object], duplicate: bool
    ) -> SnapshotItem:
        # What did not change must still be as it was shown: pins first, then the edited whole.
        self._adapter.recheck(actor, item.prepared)
        if not edits and (item.item.allow_duplicate or not duplicate):
            return _overridden(item)
        clean = check_value(edits, **self._settings.payload_limits)
        changed = edited(self._adapter, item, clean, allow_duplicate=duplicate)
        return _overridden(self._prepare.prepare_item(actor, changed))

    def _rows(self, actor: Actor, snapshot: Snapshot, confirm_hash: str) -> list[NewOperation]:
        ids = [new_id() for _ in snapshot.items]
        many = len(ids) > 1
        rows = []
        for index, (op_id, entry) in enumerate(zip(ids, snapshot.items, strict=True)):
            prepared, route = entry.prepared, entry.prepared.route
            key = f"{snapshot.preparation_id}.{index + 1}" if many else snapshot.preparation_id
            row = NewOperation(
                id=op_id,
                tenant=actor.tenant,
                maker=actor.user_id,
                op_type=route.op_type,
                command_type=route.command_type,
                form_id=route.form_id,
                module_id=route.module_id,
                target_table=route.target_table,
                target_bill_id=prepared.target_bill_id,
                payload_json=dump_json(prepared.payload, by_key=True),
                source_ref_json=None if prepared.source_ref is None else dump_json(prepared.source_ref),
                auto_execute=route.auto_execute,
                needs_approval=route.requires_approval,
                allow_duplicate=entry.item.allow_duplicate,
                code=self._first_code(entry),
                idempotency_key=key,
                payload_hash=payload_hash(prepared.payload),
                target_version=prepared.target_version,
                pins_json=dump_json(prepared.pins),
                preview_json=prepared.preview.model_dump_json(by_alias=True),
                snapshot_hash=confirm_hash,
                preparation_id=snapshot.preparation_id,
                confirmed_by=actor.user_id,
                conversation_id=snapshot.conversation_id,
                trace_id=snapshot.trace_id,
                locale=actor.locale,
                max_attempts=self._settings.max_attempts,
                expires_in_s=entry.item.expires_in,
                not_before=entry.item.not_before,
                depends_on=tuple(_sibling(d, ids[:index]) for d in entry.item.depends_on),
            )
            rows.append(replace(row, seal=seal(row, self._settings.seal_key.get_secret_value())))
        return rows

    def _first_code(self, entry: SnapshotItem) -> StatusCode:
        later = entry.item.not_before is not None and entry.item.not_before > self._clock()
        if entry.item.depends_on or later:
            return StatusCode.WAITING_OTHER
        return code_after_waiting(entry.prepared.route.requires_approval, entry.prepared.route.auto_execute)

    def _insert(self, unit: UnitOfWork, actor: Actor, rows: Sequence[NewOperation]) -> list[Operation]:
        own = {row.id for row in rows}
        foreign = sorted({d for row in rows for d in row.depends_on} - own)
        found = {o.id: o for o in archive.by_ids(unit.connection, foreign)}
        found |= {o.id: o for o in operations.by_ids(unit.connection, foreign)} if foreign else {}
        for op_id in foreign:
            if op_id not in found:
                raise not_found()
            visible(actor, found[op_id], self._adapter)
        said = [
            audit.AuditEntry(
                actor, "confirm", row.id, {"commandType": row.command_type, "hash": row.payload_hash}
            )
            for row in rows
        ]
        inserted, told = confirming.insert_confirmed(unit.connection, rows, actor, said)
        unit.tell(told)
        failpoints.reached("W0", *(row.id for row in rows))
        return inserted


def code_after_waiting(needs_approval: bool, auto_execute: bool) -> StatusCode:
    """Where an operation goes that waits for nothing else: approval first, then a worker or the user's own form."""
    if needs_approval:
        return StatusCode.WAITING_APPROVAL
    return StatusCode.SUBMITTED if auto_execute else StatusCode.WAITING_USER


def _overridden(item: SnapshotItem) -> SnapshotItem:
    """The item, unless it probably duplicates something and the person did not say "anyway"."""
    if item.twin is not None:
        candidates = tuple(item.twin["candidates"])
        raise Refused(ErrorCode.POSSIBLE_DUPLICATE, {"record": item.twin["record"]}, candidates=candidates)
    return item


def _confirm_hash(preparation_id: str, request: ConfirmRequest) -> str:
    """Which edits a confirm carried: a repeat with other ones is not a repeat."""
    return fingerprint([preparation_id, request.edits, request.item_edits, request.allow_duplicate])


def _sibling(depends_on: str, ids: Sequence[str]) -> str:
    """``#1`` names the first operation of the same preparation, if earlier; anything else is an operation id."""
    if not depends_on.startswith("#"):
        return depends_on
    position = depends_on[1:]
    if not (position.isascii() and position.isdigit() and 1 <= int(position) <= len(ids)):
        raise not_found()
    return ids[int(position) - 1]
