"""What clients were told, kept on their side: the accepted ids, and every promise that can be held against the rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from staging.contracts.status import StatusCode
from tests.torture.doors import Seen


class ClientLog:
    """Safe to use from many threads. ``problems``: promises seen broken on the spot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.accepted: set[str] = set()
        self.sent: dict[
            str, int
        ] = {}  # preparation of which a confirm was sent → how many operations it holds
        self.answered: dict[str, tuple[str, ...]] = {}  # preparation → the ids a confirm answered
        self.inserted: set[str] = set()  # ids a foreign program tried to insert
        self.cancelled: set[str] = set()
        self.ended: dict[str, int] = {}  # seen at a code that is final
        self.notes: dict[str, str] = {}  # operation → the text the person edited it to
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def count(self, what: str, times: int = 1) -> None:
        with self._lock:
            self.counts[what] += times

    def problem(self, text: str) -> None:
        with self._lock:
            self.problems.append(text)

    def confirming(self, preparation_id: str, size: int) -> None:
        """Before the first confirm is sent: from here on it may have happened."""
        with self._lock:
            self.sent[preparation_id] = size

    def confirmed(self, preparation_id: str, operations: Sequence[Seen], note: str | None = None) -> None:
        """A confirm was answered; ``note`` is the edit it carried."""
        ids = tuple(o.id for o in operations)
        with self._lock:
            first = self.answered.setdefault(preparation_id, ids)
            if first != ids or len(ids) != self.sent[preparation_id]:
                self.problems.append(f"preparation {preparation_id}: confirmed as {first}, then as {ids}")
            self.accepted |= set(ids)
            if note is not None:
                known = self.notes.setdefault(ids[0], note)
                if known != note:
                    self.problems.append(f"{ids[0]}: confirmed with the edits {known!r} and {note!r}")
        self.saw(operations)

    def inserting(self, op_id: str) -> None:
        with self._lock:
            self.inserted.add(op_id)

    def accept(self, ids: Iterable[str]) -> None:
        with self._lock:
            self.accepted |= set(ids)

    def saw(self, operations: Iterable[Seen]) -> None:
        """A final code must never change (I5)."""
        with self._lock:
            for seen in operations:
                code = StatusCode.of(seen.code)
                if code is None or not code.is_terminal or code.may_be_retried:
                    continue
                known = self.ended.setdefault(seen.id, seen.code)
                if known != seen.code:
                    self.problems.append(f"{seen.id}: was {known} for good, and then {seen.code}")

    def acted(self, verb: str, seen: Seen) -> None:
        with self._lock:
            self.counts[verb] += 1
            if verb == "cancel":
                self.cancelled.add(seen.id)
        self.saw([seen])
