"""Whatever died or was lost is found here: unannounced rows, lapsed leases, expiry, dependants. Every step is a
compare-and-set, so any number of sweepers may run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from staging.contracts.error import ErrorCode
from staging.contracts.status import Status, StatusCode
from staging.domain.errors import OpstageError, Refused
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.domain.ports import Dispatcher
from staging.services.confirm import code_after_waiting
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import dependencies, due, operations
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from workers import holder
from workers.outcomes import refused
from workers.reconciler import Reconciler

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Swept:
    """How many rows each step moved or announced in one sweep."""

    expired: int = 0
    released: int = 0
    resolved: int = 0
    announced: int = 0  # what is due beyond them is found by whoever gets the message


class Sweeper:
    def __init__(
        self,
        store: QueueStore,
        reconciler: Reconciler,
        teller: Teller,
        dispatcher: Dispatcher,
        settings: Settings,
    ) -> None:
        self._store, self._reconciler, self._teller = store, reconciler, teller
        self._dispatcher, self._settings = dispatcher, settings

    def sweep(self) -> Swept:
        """One round. What fails is left to the next round, and the rest goes on; raises, once all steps had their turn,
        the first error that is no mere matter of an unreachable or busy database."""
        swept = Swept()
        deadline = (
            time.monotonic() + self._settings.drain_budget_s
        )  # all of it stays below the task's soft limit
        steps: list[tuple[str, Callable[[], int]]] = [
            ("expired", lambda: self._expire(deadline)),
            ("released", lambda: self._release(deadline)),
            ("announced", self._announce),
            ("resolved", lambda: self._resolve(deadline)),  # last: a lookup may have to wait for locks
        ]
        bug: Exception | None = None
        for name, step in steps:
            try:
                setattr(swept, name, step())
            except Exception as error:
                known = is_db_error(error) or isinstance(error, OpstageError)
                log.warning(
                    "sweep: step %s left to the next round (%s)",
                    name,
                    error,
                    exc_info=None if known else error,
                )
                bug = bug or (None if known else error)
        if bug is not None:
            raise bug
        return swept

    def wake(self) -> None:
        """Tell some worker that rows are still due."""
        self._dispatcher.announce([])

    def _expire(self, deadline: float) -> int:
        with self._store.read() as connection:
            found = operations.expired(connection, self._settings.sweep_batch)

        def expire(operation: Operation) -> int:
            return self._fail(operation, Verb.EXPIRE, Refused(ErrorCode.EXPIRED), StatusCode.EXPIRED)

        return self._each(found, lambda o: o.id, expire, deadline)

    def _release(self, deadline: float) -> int:
        """105 whose time has come: on, when all it depends on succeeded; 424, when one failed or is not there."""
        with self._store.read() as connection:
            found = dependencies.waiting(connection, self._settings.sweep_batch)

        def release(waiting: tuple[Operation, list[str]]) -> int:
            operation, statuses = waiting
            if all(s == Status.SUCCESS for s in statuses):
                target = code_after_waiting(operation.needs_approval, operation.auto_execute)
                return self._move(operation, Verb.RELEASE, target)
            text = {"zh": "前置操作未成功", "en": "an operation it depends on did not succeed"}
            error = Refused(ErrorCode.STATE_CONFLICT, text=text)
            return self._fail(operation, Verb.RELEASE, error, StatusCode.DEPENDENCY_FAILED)

        return self._each(found, lambda w: w[0].id, release, deadline)

    def _resolve(self, deadline: float) -> int:
        with self._store.read() as connection:
            found = operations.lapsed(connection, self._settings.sweep_batch)
            held = operations.held_at(connection, holder.place(), self._settings.sweep_batch)
        found += [o for o in held if holder.is_dead(o.lease_token or "")]

        def resolve(operation: Operation) -> int:
            self._reconciler.resolve(operation)
            return 1

        return self._each(found, lambda o: o.id, resolve, deadline)

    def _announce(self) -> int:
        with self._store.read() as connection:
            found = due.due(connection, self._settings.claim_batch, self._settings.announce_after_s)
        if found:
            self._dispatcher.announce([d.id for d in found])
        return len(found)

    def _each(
        self, found: Sequence[T], name: Callable[[T], str], act: Callable[[T], int], deadline: float
    ) -> int:
        """Sum of ``act`` over ``found`` until ``deadline``. One that fails holds up no other and raises last."""
        total, failure = 0, None
        for item in found:
            if time.monotonic() > deadline:
                log.warning("sweep: time is up; the next round goes on")
                break
            try:
                total += act(item)
            except Exception as error:
                log.warning("sweep: operation %s left to the next round", name(item), exc_info=error)
                failure = failure or error
        if failure is not None:
            raise failure
        return total

    def _fail(self, operation: Operation, verb: Verb, error: OpstageError, code: StatusCode) -> int:
        done = refused(operation, error)
        return self._move(
            operation,
            verb,
            code,
            done.message,
            operations.error_changes(done.message, done.error_code, done.detail),
        )

    def _move(
        self,
        operation: Operation,
        verb: Verb,
        target: StatusCode,
        message: str = "",
        changes: dict[str, object] | None = None,
    ) -> int:
        def work(unit: UnitOfWork) -> bool:
            moved = operations.move(
                unit.connection, verb, operation, target, message=message, changes=changes
            )
            if moved:
                unit.touch(operation.id)
            return moved

        moved, told = self._store.transact(work)
        self._teller.committed(told)
        return int(moved)
