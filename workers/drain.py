"""What one Celery task does: run the rows it names, then go on with whatever is due, within a time budget."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from staging.domain.identity import Tenant, is_valid_id
from staging.settings import Settings
from staging.storage.due import in_turn
from staging.storage.unit_of_work import QueueStore
from workers.executor import Executor

_MISSES = 3  # windows in a row in which competitors were faster
_WINDOW = 8  # how many batches deep to look when the head of the queue is contended
_SKIP = 8  # tenants to pass over, at most, where another process may be at the same one


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
        misses, woken, met = 0, False, True
        while misses < _MISSES:
            size = self._executor.pace.size
            # Two at one tenant wait for each other: who may have met somebody goes to another one.
            skip = random.randrange(_SKIP) if met else 0  # noqa: S311 - no secret
            due = self._due(size if not misses else size * _WINDOW, skip)
            if not due:
                return
            ends = over()
            if ends or (len(due) >= size and not woken):
                self._wake()
                woken = True
            if ends:
                return
            chosen = due if not misses else random.sample(due, min(size, len(due)))
            claimed = self._executor.run_batch(chosen, over)
            misses, met = 0 if claimed else misses + 1, claimed < len(chosen)

    def _due(self, limit: int, skip: int) -> list[str]:
        with self._store.read() as connection:
            self._turn, found = in_turn(connection, self._turn, limit, skip)
        return [d.id for d in found]
