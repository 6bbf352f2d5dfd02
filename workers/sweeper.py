"""Whatever died or was lost is found here: unannounced rows, lapsed leases, expiry, dependants. Every step is a
compare-and-set, so any number of sweepers may run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from staging.contracts.error import ErrorCode
from staging.contracts.status import Status, StatusCode
from staging.domain.errors import OpstageError, Refused
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.domain.ports import Dispatcher
from staging.services.confirm import code_after_waiting
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import operations
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from workers.outcomes import refused
from workers.reconciler import Reconciler

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Swept:
    """How many rows each step moved or announced in one sweep."""

    expired: int = 0
    released: int = 0
    resolved: int = 0
    announced: int = 0


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
        """One round. A step that meets a database error is logged and left to the next round; the others go on."""
        swept = Swept()
        steps: list[tuple[str, Callable[[], int]]] = [
            ("expired", self._expire),
            ("released", self._release),
            ("resolved", self._resolve),
            ("announced", self._announce),
        ]
        for name, step in steps:
            try:
                setattr(swept, name, step())
            except Exception as error:
                if not (is_db_error(error) or isinstance(error, OpstageError)):
                    raise
                log.warning("sweep: step %s left to the next round (%s)", name, error)
        return swept

    def wake(self) -> None:
        """Tell some worker that rows are still due."""
        self._dispatcher.announce([])

    def _expire(self) -> int:
        with self._store.read() as connection:
            found = operations.expired(connection, self._settings.sweep_batch)
        return sum(self._fail(o, Verb.EXPIRE, Refused(ErrorCode.EXPIRED), StatusCode.EXPIRED) for o in found)

    def _release(self) -> int:
        """105 whose time has come: on, when all it depends on succeeded; 424, when one failed or is not there."""
        with self._store.read() as connection:
            found = operations.waiting(connection, self._settings.sweep_batch)
        moved = 0
        for operation, statuses in found:
            if all(s == Status.SUCCESS for s in statuses):
                target = code_after_waiting(operation.needs_approval, operation.auto_execute)
                moved += self._move(operation, Verb.RELEASE, target)
            elif any(s not in (Status.SUCCESS, Status.PENDING) for s in statuses):
                text = {"zh": "前置操作未成功", "en": "an operation it depends on did not succeed"}
                error = Refused(ErrorCode.STATE_CONFLICT, text=text)
                moved += self._fail(operation, Verb.RELEASE, error, StatusCode.DEPENDENCY_FAILED)
        return moved

    def _resolve(self) -> int:
        with self._store.read() as connection:
            found = operations.lapsed(connection, self._settings.sweep_batch)
        for operation in found:
            self._reconciler.resolve(operation)
        return len(found)

    def _announce(self) -> int:
        with self._store.read() as connection:
            due = operations.due(connection, self._settings.sweep_batch, self._settings.announce_after_s)
        if due:
            self._dispatcher.announce([d.id for d in due])
        return len(due)

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
