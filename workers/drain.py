"""What one Celery task does: run the rows it names, then go on with whatever is due, within a time budget."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from staging.domain.identity import Tenant, is_valid_id
from staging.settings import Settings
from staging.storage.due import Due, in_turn, is_at_work
from staging.storage.unit_of_work import QueueStore
from workers.executor import Executor

_MISSES = 3  # windows in a row in which competitors were faster
_WINDOW = 8  # how many batches deep to look when the head of the queue is contended
_PASSED = 8  # how many tenants to pass over, at most, that another process is at work for


class Drain:
    """``wake`` tells some worker that rows are due; ``stopping``: this process takes up no further batch."""

    def __init__(
        self,
        executor: Executor,
        store: QueueStore,
        settings: Settings,
        wake: Callable[[], object],
        stopping: Callable[[], bool],
    ) -> None:
        self._executor, self._store, self._settings = executor, store, settings
        self._wake, self._stopping = wake, stopping
        self._turn: Tenant | None = None
        self._passed: set[Tenant | None] = set()

    def run(self, ids: Sequence[str]) -> None:
        """Execute ``ids``, a batch at most, then due rows of one tenant after the other.

        ``ids`` come from a message, which anybody may have forged: what cannot be an id is not even looked up. The
        first full batch wakes another process, which may find the same; and whoever ends while rows may be left does.
        """
        deadline = time.monotonic() + self._settings.drain_budget_s

        def over() -> bool:
            return self._stopping() or time.monotonic() > deadline

        named = [i for i in dict.fromkeys(ids) if is_valid_id(i)][: self._executor.pace.size]
        if named:
            self._executor.run_batch(named, over)
        misses, woken = 0, False
        while misses < _MISSES:
            size = self._executor.pace.size
            due = self._due(size if not misses else size * _WINDOW)
            if not due:
                return
            ends = over()
            if ends or (len(due) >= size and not woken):
                self._wake()
                woken = True
            if ends:
                return
            chosen = due if not misses else random.sample(due, min(size, len(due)))
            misses = 0 if self._executor.run_batch(chosen, over) else misses + 1

    def look(self) -> bool:
        """Is anything due? Whoever asks has a connection then, and prepared questions."""
        with self._store.ask() as connection:
            return bool(in_turn(connection, None, 1)[1])

    def _due(self, limit: int) -> list[str]:
        """Two that share commits of one tenant wait for each other: somebody else's tenant is passed over, unless all
        of the next ones are, and never twice in a row."""
        found: list[Due] = []
        with self._store.ask() as connection:
            for _ in range(_PASSED):
                self._turn, found = in_turn(connection, self._turn, limit)
                if self._turn is None or self._turn in self._passed or not is_at_work(connection, self._turn):
                    break
                self._passed.add(self._turn)
            self._passed.discard(self._turn)
        return [d.id for d in found]
