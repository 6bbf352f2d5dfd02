"""What one Celery task does: run the rows it names, then go on with whatever is due, within a time budget."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from staging.domain.identity import is_valid_id
from staging.settings import Settings
from staging.storage import operations
from staging.storage.unit_of_work import QueueStore
from workers.executor import Executor

_MISSES = 3  # windows in a row in which competitors were faster
_WINDOW = 8  # how many batches deep to look when the head of the queue is contended


def drain(
    executor: Executor,
    store: QueueStore,
    settings: Settings,
    ids: Sequence[str],
    stopping: Callable[[], bool],
) -> bool:
    """Execute ``ids`` and then due rows. Returns True if time was up, or this process was told to stop, while rows may
    still be due: wake somebody.

    ``ids`` come from a message, which anybody may have forged: what cannot be an id is not even looked up.
    """
    deadline = time.monotonic() + settings.drain_budget_s

    def over() -> bool:
        return stopping() or time.monotonic() > deadline

    size = settings.claim_batch
    named = [i for i in dict.fromkeys(ids) if is_valid_id(i)]
    while named:
        executor.run_batch(named[:size])
        named = named[size:]
        if over():
            return True
    misses = 0
    while misses < _MISSES:
        with store.read() as connection:
            due = [d.id for d in operations.due(connection, size if not misses else size * _WINDOW)]
        if not due:
            return False
        if over():
            return True
        chosen = due if not misses else random.sample(due, min(size, len(due)))
        misses = 0 if executor.run_batch(chosen) else misses + 1
    return False
