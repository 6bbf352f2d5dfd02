"""Group commit: several operations of one tenant in one transaction, where queue and ERP share the database.

Each keeps its ledger row, its compare-and-set with the fencing token, its event and its audit entry; they share the
commit, one INSERT of events, one hold on the audit chain. Begun without savepoints; where one is refused, all begin
again with a savepoint each. Whatever else goes wrong undoes them all, and they run one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from staging import failpoints
from staging.domain.errors import OpstageError, Transient
from staging.domain.operation import Operation, Told
from staging.domain.ports import ErpAdapter, ErpTransaction
from staging.storage import audit
from staging.storage.unit_of_work import UnitOfWork, savepoint
from workers.attempt import Attempt
from workers.batch import Costs
from workers.outcomes import Done, refused
from workers.writeback import write_back_all


class _Refused(Exception):
    """A member was refused after it may have written something: begin again with savepoints."""


class GroupRun:
    """``in_commit``: an exception proves nothing any more. ``current``: the member that was being executed."""

    def __init__(
        self, adapter: ErpAdapter, attempt: Attempt, costs: Costs, members: Sequence[Operation]
    ) -> None:
        self._adapter, self._attempt, self._costs, self._members = adapter, attempt, costs, members
        self.in_commit = False
        self.current = members[0]

    def execute(self) -> list[Told]:
        """Execute and commit all; what is to be told. Raises ``LeaseLost`` and what adapter and database raise."""
        try:
            return self._execute(savepoints=False)
        except _Refused:
            return self._execute(savepoints=True)

    def _execute(self, *, savepoints: bool) -> list[Told]:
        ids = [o.id for o in self._members]
        with self._adapter.transaction() as tx:
            # First of all locks: of two groups of one tenant the second waits here and not in the middle.
            audit.hold(tx.connection, self._members[0].tenant)
            failpoints.reached("W5", *ids)
            ends = []
            for member in self._members:
                self.current, began = member, time.monotonic()
                ends.append((member, self._end(tx, member, savepoints=savepoints)))
                self._costs.note(member, time.monotonic() - began)
            failpoints.reached("W6", *ids)
            unit = UnitOfWork(tx.connection)
            write_back_all(unit, ends)
            told = unit.collect()
            self.in_commit = True
            tx.commit()
            failpoints.reached("W7", *ids)
        return told

    def _end(self, tx: ErpTransaction, operation: Operation, *, savepoints: bool) -> Done:
        try:
            execution = self._attempt.execution(operation)
            if not savepoints:
                return self._attempt.apply(tx, operation, execution)
            with savepoint(tx.connection):
                return self._attempt.apply(tx, operation, execution)
        except Transient:
            raise
        except OpstageError as error:
            if not savepoints:
                raise _Refused from error
            return refused(operation, error)
