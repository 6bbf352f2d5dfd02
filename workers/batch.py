"""Claimed operations that wait for their turn in one process; while one of them runs long, the others go back."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median

from staging.domain.operation import Operation

log = logging.getLogger(__name__)
_REMEMBERED = 7
_FIRST_BATCH = 10
_Rest = Callable[[Sequence[Operation]], None]


class Batch:
    """One thread takes operations from it, another may take away what has not begun."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._waiting = deque(operations)
        self._lock = threading.Lock()
        self._one_by_one = False
        self.begun_at = time.monotonic()
        self.begun = 0

    def take(self) -> Operation | None:
        """The next one to run, None at the end."""
        with self._lock:
            self.begun_at = time.monotonic()
            if not self._waiting:
                return None
            self.begun += 1
            return self._waiting.popleft()

    def take_group(self, first: Operation, fits: Callable[[Operation], bool]) -> list[Operation]:
        """``first`` and those right behind it that ``fits`` takes; ``first`` alone after a ``put_back``."""
        group = [first]
        with self._lock:
            while not self._one_by_one and self._waiting and fits(self._waiting[0]):
                group.append(self._waiting.popleft())
            self.begun += len(group) - 1
        return group

    def put_back(self, group: Sequence[Operation]) -> None:
        """To the front again; from now on each is run alone."""
        with self._lock:
            self._waiting.extendleft(reversed(group))
            self.begun -= len(group)
            self._one_by_one = True

    def waiting(self) -> list[Operation]:
        with self._lock:
            return list(self._waiting)

    def take_rest(self, if_begun_before: float | None = None) -> list[Operation]:
        """All that have not begun, and with ``if_begun_before`` (monotonic seconds) only if the current one has since
        then been running."""
        with self._lock:
            if if_begun_before is not None and self.begun_at > if_begun_before:
                return []
            rest = list(self._waiting)
            self._waiting.clear()
            return rest


class Pace:
    """How many operations to claim at once: as many as the last batch's pace would do ``within_s`` (seconds), at most
    ``most``. Long ones are claimed one by one then, instead of being claimed and handed back."""

    def __init__(self, most: int, within_s: float) -> None:
        self._most, self._within_s = most, within_s
        self.size = min(most, _FIRST_BATCH)

    def note(self, batch: Batch, seconds: float) -> None:
        """``batch`` has ended after so long."""
        fits = int(self._within_s * batch.begun / max(seconds, 0.001))
        if batch.begun:
            self.size = max(1, min(self._most, fits))


def kind_of(operation: Operation) -> tuple[str, str]:
    """What operations have to have in common to take alike long."""
    return operation.command_type, operation.form_id


class Costs:
    """How long operations of a kind take: the median of the last ones, so that a cold start or a busy moment passes."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], deque[float]] = {}

    def note(self, operation: Operation, seconds: float) -> None:
        self._seconds.setdefault(kind_of(operation), deque(maxlen=_REMEMBERED)).append(seconds)

    def of(self, operation: Operation) -> float:
        """Seconds, infinite for a kind never seen."""
        last = self._seconds.get(kind_of(operation))
        return median(last) if last else float("inf")


class Watcher:
    """A thread that gives back the rest of a batch whose current operation takes over ``patience_s``.

    Whoever is handed back is claimed by another process at once instead of waiting for this one. What ``give_back``
    cannot release keeps its lease and lapses. ``patience_s`` None: nothing goes back.
    """

    def __init__(self, patience_s: float | None, give_back: _Rest) -> None:
        self._patience_s, self._give_back = patience_s, give_back
        self._batch: Batch | None = None
        self._busy = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, batch: Batch) -> None:
        if self._patience_s is None:
            return
        self._batch = batch
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, args=(self._patience_s,), name="batch-watcher", daemon=True
            )
            self._thread.start()
        self._busy.set()

    def done(self) -> None:
        self._busy.clear()
        self._batch = None

    def _run(self, patience_s: float) -> None:
        while self._busy.wait():
            batch = self._batch
            if batch is not None:
                rest = batch.take_rest(if_begun_before=time.monotonic() - patience_s)
                if rest:
                    self._give_back_or_lapse(rest)
            time.sleep(patience_s / 2)

    def _give_back_or_lapse(self, rest: Sequence[Operation]) -> None:
        try:
            self._give_back(rest)
        except Exception:
            # The thread must live on for the next batch; these rows' leases lapse.
            log.exception("%d operations could not be handed back", len(rest))
