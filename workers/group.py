"""Group commit: several operations of one tenant in one transaction, where queue and ERP share the database.

Each keeps its ledger row, its compare-and-set with the fencing token, its event and its audit entry; they share the
commit and the statements that write these. Begun without savepoints; where one is refused, all begin again with a
savepoint each. Whatever else goes wrong undoes them all, and they run one by one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from staging import failpoints
from staging.domain.errors import OpstageError, Transient
from staging.domain.operation import Operation, Told
from staging.domain.ports import ErpAdapter, ErpTransaction
from staging.storage.audit import chain_of
from staging.storage.latch import hold_latch
from staging.storage.unit_of_work import UnitOfWork, savepoint
from workers.attempt import Attempt, Examined
from workers.batch import Costs
from workers.outcomes import Done, refused
from workers.writeback import write_back_all


class _Refused(Exception):
    """A member was refused after it may have written something: begin again with savepoints."""


class GroupRun:
    """``in_commit``: an exception proves nothing any more. ``current``: the members that were being worked on, one
    where it was one; nobody can say whose doing it is when time is up in the middle of several."""

    def __init__(
        self, adapter: ErpAdapter, attempt: Attempt, costs: Costs, members: Sequence[Operation]
    ) -> None:
        self._adapter, self._attempt, self._costs, self._members = adapter, attempt, costs, members
        self.in_commit = False
        self.current = members

    def execute(self) -> list[Told]:
        """Execute and commit all; what is to be told. Raises ``LeaseLost`` and what adapter and database raise."""
        try:
            return self._execute(savepoints=False)
        except _Refused:
            return self._execute(savepoints=True)

    def _execute(self, *, savepoints: bool) -> list[Told]:
        ids = [o.id for o in self._members]
        # Before anything is locked: on SQLite nobody else could write meanwhile.
        examined = [] if savepoints else self._examined()
        with self._adapter.transaction() as tx:
            # Of two groups of one tenant the second waits here and not in the middle, where both may hold something.
            hold_latch(tx.connection, f"group {chain_of(self._members[0].tenant)}")
            failpoints.reached("W5", *ids)
            ends = self._one_by_one(tx) if savepoints else self._together(tx, examined)
            failpoints.reached("W6", *ids)
            unit = UnitOfWork(tx.connection)
            write_back_all(unit, list(zip(self._members, ends, strict=True)))
            told = unit.collect()
            self.in_commit = True
            tx.commit()
            failpoints.reached("W7", *ids)
        return told

    def _examined(self) -> list[Examined]:
        try:
            return [self._attempt.examine(o) for o in self._members]
        except OpstageError as error:
            raise _Refused from error

    def _together(self, tx: ErpTransaction, members: Sequence[Examined]) -> list[Done]:
        try:
            return self._attempt.apply_all(tx, members, self._under_way)
        except Transient:
            raise
        except OpstageError as error:
            raise _Refused from error

    def _one_by_one(self, tx: ErpTransaction) -> list[Done]:
        ends = []
        for member in self._members:
            with self._under_way([member]):
                ends.append(self._end(tx, member))
        return ends

    def _end(self, tx: ErpTransaction, operation: Operation) -> Done:
        try:
            execution = self._attempt.execution(self._attempt.examine(operation))
            with savepoint(tx.connection):
                return self._attempt.apply(tx, operation, execution)
        except Transient:
            raise
        except OpstageError as error:
            return refused(operation, error)

    @contextmanager
    def _under_way(self, operations: Sequence[Operation]) -> Iterator[None]:
        self.current, began = operations, time.monotonic()
        yield
        self.current, each_s = self._members, (time.monotonic() - began) / len(operations)
        for operation in operations:
            self._costs.note(operation, each_s)
