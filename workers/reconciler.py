"""Finds out what became of an operation whose worker or commit was lost. Unknown is not absent: only a lookup
in the ERP's ledger that completed permits a re-execution (I9)."""

from __future__ import annotations

import logging

from staging import failpoints
from staging.contracts.status import StatusCode
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter, LedgerEntry
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import operations
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from workers.holder import new_token
from workers.outcomes import Done, from_ledger, same_content, worn_out
from workers.writeback import LeaseLost, back_off, resolve

log = logging.getLogger(__name__)


class Reconciler:
    def __init__(self, store: QueueStore, adapter: ErpAdapter, teller: Teller, settings: Settings) -> None:
        self._store, self._adapter, self._teller, self._settings = store, adapter, teller, settings

    def resolve(self, operation: Operation) -> None:
        """Take the lease over (101 → 102, fresh token), look into the ledger, write what it says.

        Does nothing if the operation has moved meanwhile. Where the ERP database cannot answer, the row stays 102
        and is looked up again when this lease has lapsed.
        """
        held = self._take(operation)
        if held is None:
            return
        failpoints.reached("W12", operation.id)
        try:
            entry = self._lookup(held)
        except Exception as error:
            if not is_db_error(error):
                raise
            log.warning("operation %s: ledger lookup failed (%s); stays 102", held.id, type(error).__name__)
            return
        if entry is not None and entry.op_id == held.id and not same_content(held, entry):
            # Executed, but not what the row says now: neither success nor "nothing was done" would be true (I9).
            log.error("operation %s: the ledger holds other content under its name; stays 102", held.id)
            return
        try:
            _, told = self._store.transact(lambda unit: self._settle(unit, held, entry))
        except LeaseLost:
            log.info("operation %s: resolved by somebody else", held.id)
            return
        self._teller.committed(told)

    def _take(self, operation: Operation) -> Operation | None:
        token = new_token()

        def work(unit: UnitOfWork) -> Operation | None:
            if not operations.take_over(unit.connection, operation, token, self._settings.lease_s):
                return None
            unit.touch(operation.id)
            return operations.by_ids(unit.connection, [operation.id])[0]

        held, told = self._store.transact(work)
        self._teller.committed(told)
        return held

    def _lookup(self, operation: Operation) -> LedgerEntry | None:
        """None is a proven absence: the lost attempt can no longer commit, in either database mode."""
        ledger = self._adapter.ledger
        if not self._settings.shared_database:
            with self._adapter.transaction() as tx:
                ledger.fence(tx.connection, operation.id, operation.seq)
                tx.commit()
        with self._adapter.transaction() as tx:
            return ledger.lookup(tx.connection, operation.tenant, operation.idempotency_key)

    def _settle(self, unit: UnitOfWork, operation: Operation, entry: LedgerEntry | None) -> None:
        if entry is not None:
            resolve(unit, operation, from_ledger(operation, entry))
        elif operation.attempt < operation.max_attempts:
            lost = Done(StatusCode.SUBMITTED, "", again=True)
            back_off(unit, operation, lost, self._settings, Verb.RESOLVE)
        else:
            resolve(unit, operation, worn_out(operation))
