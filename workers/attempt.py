"""One attempt inside an open transaction of the ERP: what the row says, the ledger's row, the business change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby

from staging.contracts.error import ErrorCode
from staging.domain.canonical import hashes_to, payload_hash
from staging.domain.errors import Refused
from staging.domain.intake import load_json, parse_json, require_object
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter, ErpTransaction, Execution, LedgerRow
from staging.domain.seal import claims_confirm, is_sealed
from staging.services.access import route_of
from staging.settings import Settings
from workers.batch import kind_of
from workers.outcomes import Done, from_ledger, ledger_result, succeeded
from workers.writeback import LeaseLost

_Member = tuple[Operation, Execution]


class Attempt:
    def __init__(self, adapter: ErpAdapter, settings: Settings) -> None:
        self._adapter, self._settings = adapter, settings

    def execution(self, operation: Operation) -> Execution:
        """What the adapter is told of ``operation``. Raises ``OpstageError`` where the row may not be executed."""
        limits = self._settings.payload_limits

        def parsed(text: str | None) -> dict[str, object] | None:
            return require_object(parse_json(text, max_bytes=20_000_000, max_depth=64)) if text else None

        key = self._settings.seal_key.get_secret_value()
        sealed = is_sealed(operation, key)
        if sealed and hashes_to(operation.payload_json, operation.payload_hash):
            # To the character what our confirm wrote.
            payload, as_hashed = load_json(operation.payload_json), True
        else:
            payload = require_object(parse_json(operation.payload_json, **limits))
            as_hashed = payload_hash(payload) == operation.payload_hash
        sealed = sealed and as_hashed
        if not as_hashed or (key and claims_confirm(operation) and not sealed):
            altered = {"zh": "内容与确认时不一致", "en": "the operation is not what was confirmed"}
            raise Refused(ErrorCode.VERSION_CONFLICT, text=altered)  # I2: what is executed is what was shown
        if operation.needs_approval and not operation.approved_by:
            missing = {"zh": "尚未经他人批准", "en": "nobody has approved it yet"}
            raise Refused(ErrorCode.FORBIDDEN, text=missing)
        return Execution(
            op_id=operation.id,
            actor=operation.maker_actor,
            route=route_of(operation),
            target_bill_id=operation.target_bill_id,
            payload=payload,
            source_ref=parsed(operation.source_ref_json),
            # Sealed, they are our own text of what ERP records hold, to be compared to the character.
            pins=load_json(operation.pins_json)
            if sealed and operation.pins_json
            else parsed(operation.pins_json),
            target_version=operation.target_version,
            prepared=sealed,
            allow_duplicate=operation.allow_duplicate,
        )

    def apply(self, tx: ErpTransaction, operation: Operation, execution: Execution) -> Done:
        """Ledger row first: a twin waits there, then gets the first result (201). Raises ``LeaseLost`` for a fenced
        attempt, and what the adapter raises."""
        ledger, tenant, key = self._adapter.ledger, operation.tenant, operation.idempotency_key
        entry = ledger.insert_first(
            tx.connection, tenant, key, operation.id, operation.command_type, operation.payload_hash
        )
        if entry is not None:
            return from_ledger(operation, entry)
        # Only now, with the ledger row held: a fence set before a lookup found nothing cannot be missed here.
        # Fences count by the claim's seq, which never goes back; attempts do, when a person retries.
        if not self._settings.shared_database and ledger.is_fenced(
            tx.connection, operation.id, operation.seq
        ):
            raise LeaseLost(operation.id)
        outcome = self._adapter.apply(tx, execution)
        ledger.store_result(tx.connection, tenant, key, ledger_result(outcome))
        return succeeded(operation, outcome)

    def apply_all(
        self,
        tx: ErpTransaction,
        members: Sequence[_Member],
        around: Callable[[Sequence[Operation]], AbstractContextManager[object]],
    ) -> list[Done]:
        """``apply`` of one tenant's operations where queue and ERP share the database: one statement for all ledger
        rows, one for all results. Those that the adapter takes as a set are executed together, inside ``around`` of
        them; others alone, inside ``around`` of each."""
        tenant = members[0][0].tenant
        ledger, rows = self._adapter.ledger, [_ledger_row(operation) for operation, _ in members]
        before = ledger.insert_all(tx.connection, tenant, rows)
        keys = [operation.idempotency_key for operation, _ in members]
        answered = [operation for operation, _ in members if operation.idempotency_key in before]
        ends, results = {}, {}
        if answered:
            with around(answered):
                ends = {o.idempotency_key: from_ledger(o, before[o.idempotency_key]) for o in answered}
        for some in self._sets([m for k, m in zip(keys, members, strict=True) if k not in before]):
            operations, executions = zip(*some, strict=True)
            with around(operations):
                outcomes = self._adapter.apply_all(tx, executions)
                for operation, outcome in zip(operations, outcomes, strict=True):
                    results[operation.idempotency_key] = ledger_result(outcome)
                    ends[operation.idempotency_key] = succeeded(operation, outcome)
        ledger.store_results(tx.connection, tenant, results)
        return [ends[key] for key in keys]

    def _sets(self, members: Sequence[_Member]) -> Iterator[Sequence[_Member]]:
        """``members`` in their order, those of a kind that follow each other together where the adapter takes sets."""

        def kind(member: _Member) -> tuple[bool, object]:
            return self._adapter.in_sets(member[1]), kind_of(member[0])

        for (in_sets, _), of_kind in groupby(members, key=kind):
            some = list(of_kind)
            yield from [some] if in_sets else ([one] for one in some)


def _ledger_row(operation: Operation) -> LedgerRow:
    return LedgerRow(operation.idempotency_key, operation.id, operation.command_type, operation.payload_hash)
