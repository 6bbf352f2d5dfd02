"""One attempt inside an open transaction of the ERP: what the row says, the ledger's row, the business change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Examined:
    """An operation that may be executed. ``payload``: None where it is still to be read from a text proven to be the
    one that was confirmed."""

    operation: Operation
    sealed: bool
    payload: dict[str, Any] | None


class Attempt:
    def __init__(self, adapter: ErpAdapter, settings: Settings) -> None:
        self._adapter, self._settings = adapter, settings

    def examine(self, operation: Operation) -> Examined:
        """Raises ``OpstageError`` where the row may not be executed."""
        key = self._settings.seal_key.get_secret_value()
        sealed, payload = is_sealed(operation, key), None
        # To the character what our confirm wrote: it need not be read to be compared.
        as_hashed = sealed and hashes_to(operation.payload_json, operation.payload_hash)
        if not as_hashed:
            payload = require_object(parse_json(operation.payload_json, **self._settings.payload_limits))
            as_hashed = payload_hash(payload) == operation.payload_hash
        if not as_hashed or (key and claims_confirm(operation) and not sealed):
            altered = {"zh": "内容与确认时不一致", "en": "the operation is not what was confirmed"}
            raise Refused(ErrorCode.VERSION_CONFLICT, text=altered)  # I2: what is executed is what was shown
        if operation.needs_approval and not operation.approved_by:
            missing = {"zh": "尚未经他人批准", "en": "nobody has approved it yet"}
            raise Refused(ErrorCode.FORBIDDEN, text=missing)
        return Examined(operation, sealed, payload)

    def execution(self, examined: Examined) -> Execution:
        """What the adapter is told of the operation. Raises ``OpstageError`` where the rest of the row is no JSON."""
        operation, sealed = examined.operation, examined.sealed
        pins = operation.pins_json
        return Execution(
            op_id=operation.id,
            actor=operation.maker_actor,
            route=route_of(operation),
            target_bill_id=operation.target_bill_id,
            payload=load_json(operation.payload_json) if examined.payload is None else examined.payload,
            source_ref=_parsed(operation.source_ref_json),
            # Sealed, they are our own text of what ERP records hold, to be compared to the character.
            pins=load_json(pins) if sealed and pins else _parsed(pins),
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
        members: Sequence[Examined],
        around: Callable[[Sequence[Operation]], AbstractContextManager[object]],
    ) -> list[Done]:
        """``apply`` of one tenant's operations where queue and ERP share the database: one statement for all ledger
        rows, one for all results. Those that the adapter takes as a set are executed together, inside ``around`` of
        them; others alone, inside ``around`` of each."""
        operations = [member.operation for member in members]
        tenant, ledger = operations[0].tenant, self._adapter.ledger
        before = ledger.insert_all(tx.connection, tenant, [_ledger_row(o) for o in operations])
        answered = [o for o in operations if o.idempotency_key in before]
        # Nobody reads the content of those that are answered.
        to_run = [
            (m.operation, self.execution(m)) for m in members if m.operation.idempotency_key not in before
        ]
        ends, results = {}, {}
        if answered:
            with around(answered):
                ends = {o.idempotency_key: from_ledger(o, before[o.idempotency_key]) for o in answered}
        for some in self._sets(to_run):
            together, executions = zip(*some, strict=True)
            with around(together):
                outcomes = self._adapter.apply_all(tx, executions)
                for operation, outcome in zip(together, outcomes, strict=True):
                    results[operation.idempotency_key] = ledger_result(outcome)
                    ends[operation.idempotency_key] = succeeded(operation, outcome)
        ledger.store_results(tx.connection, tenant, results)
        return [ends[o.idempotency_key] for o in operations]

    def _sets(self, members: Sequence[_Member]) -> Iterator[Sequence[_Member]]:
        """``members`` in their order, those of a kind that follow each other together where the adapter takes sets."""

        def kind(member: _Member) -> tuple[bool, object]:
            return self._adapter.in_sets(member[1]), kind_of(member[0])

        for (in_sets, _), of_kind in groupby(members, key=kind):
            some = list(of_kind)
            yield from [some] if in_sets else ([one] for one in some)


def _parsed(text: str | None) -> dict[str, object] | None:
    return require_object(parse_json(text, max_bytes=20_000_000, max_depth=64)) if text else None


def _ledger_row(operation: Operation) -> LedgerRow:
    return LedgerRow(operation.idempotency_key, operation.id, operation.command_type, operation.payload_hash)
