"""Reading operations: one, its events, its status (waiting for a change if asked), and "my AI todos"."""

from __future__ import annotations

import time
from dataclasses import dataclass

from staging.contracts.preparation import OperationStatus
from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Actor
from staging.domain.operation import Operation, link_for
from staging.domain.ports import ErpAdapter
from staging.services.access import approvable, fetch, moved_on
from staging.storage import journal, search
from staging.storage.unit_of_work import QueueStore

_POLL_S = 0.2
_TODO_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Todos:
    """What waits for me, what runs, what ended lately; each newest first but for what waits, oldest first."""

    waiting: list[Operation]
    running: list[Operation]
    recent: list[Operation]


class InspectService:
    def __init__(self, store: QueueStore, adapter: ErpAdapter) -> None:
        self._store, self._adapter = store, adapter

    def get(self, actor: Actor, op_id: str) -> Operation:
        """Raises operation_not_found for what is missing and for what the actor may not see alike."""
        with self._store.read() as connection:
            return fetch(connection, actor, op_id, self._adapter)

    def prefill(self, actor: Actor, op_id: str) -> Operation:
        """An operation that waits for the user in the ERP's form. Raises state_conflict for one that does not."""
        operation = self.get(actor, op_id)
        if operation.status_code is not StatusCode.WAITING_USER:
            raise moved_on(operation)
        return operation

    def events(self, actor: Actor, op_id: str, after: int = 0) -> list[journal.JournalEntry]:
        """Events with a seq above ``after``, ascending."""
        with self._store.read() as connection:
            operation = fetch(connection, actor, op_id, self._adapter)
            return journal.events(connection, op_id, after, archived=operation.archived_at is not None)

    def status(self, actor: Actor, op_id: str, *, wait_s: float = 0.0, after: int = 0) -> OperationStatus:
        """The short status; with ``wait_s`` seconds, returns as soon as the seq is above ``after`` or time is up."""
        deadline = time.monotonic() + wait_s
        while True:
            operation = self.get(actor, op_id)
            if operation.seq > after or time.monotonic() >= deadline:
                return status_of(operation, actor.locale)
            time.sleep(_POLL_S)

    def wait_terminal(self, actor: Actor, op_id: str, timeout_s: float) -> Operation:
        """Poll until the operation is done or waits for a person; the newest state when time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            operation = self.get(actor, op_id)
            if operation.status != Status.PENDING or time.monotonic() >= deadline:
                return operation
            time.sleep(_POLL_S)

    def todos(self, actor: Actor) -> Todos:
        """ "My AI todos" (CONTRACT section 4)."""
        with self._store.read() as connection:
            mine = search.of_maker(connection, actor.tenant, actor.user_id, _TODO_LIMIT)
            kinds = approvable(connection, actor, self._adapter)
            approvals = search.for_approval(connection, actor.tenant, actor.user_id, kinds, _TODO_LIMIT)
        return Todos(
            waiting=[*mine.waiting, *approvals],
            running=mine.running,
            recent=mine.recent,
        )


def status_of(operation: Operation, locale: str) -> OperationStatus:
    """The wire form of an operation's status, for a reader of ``locale``."""
    return OperationStatus(
        id=operation.id,
        seq=operation.seq,
        status=operation.status,
        code=operation.code,
        message=operation.message_in(locale),
        result_bill_id=operation.result_bill_id,
        link=link_for(operation),
    )
