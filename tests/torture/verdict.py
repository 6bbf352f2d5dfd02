"""After the last fault: everything comes to rest, and every promise is held against what the databases say."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from staging.contracts.status import RETRYABLE, StatusCode as C
from tests.support.oracle import Oracle, Verdict
from tests.torture.doors import BOSS, Door, Said, Unsure
from tests.torture.keeper import Keeper
from tests.torture.log import ClientLog
from tests.torture.payloads import locked_row
from tests.torture.scene import Scene

_PATIENCE_S = 120.0
_POLL_S = 0.5


class Judge:
    """Plain SQL on connections of its own, beside the oracle."""

    def __init__(self, scene: Scene, log: ClientLog) -> None:
        self._log = log
        self._queue = create_engine(scene.where.queue_url, poolclass=NullPool)
        self._erp = create_engine(scene.where.erp_url, poolclass=NullPool)
        self._oracle = Oracle(scene.where.queue_url, scene.where.erp_url)

    def pending(self) -> list[tuple[str, int]]:
        """Id and code of all that have not come to an end."""
        found = self._all(
            self._queue, "SELECT {sId}, {iStatusCode} FROM ai_op_queue WHERE {sStatus} = 'pending'"
        )
        return [(str(op_id), int(code)) for op_id, code in found]

    def held(self) -> set[tuple[str, str]]:
        """Operations a worker is on, with their tokens; nothing where the database cannot be asked."""
        try:
            found = self._all(
                self._queue, "SELECT {sId}, {sLeaseToken} FROM ai_op_queue WHERE {iStatusCode} = 101"
            )
        except SQLAlchemyError:
            return set()
        return {(str(op_id), str(token)) for op_id, token in found}

    def broken_already(self) -> list[str]:
        """What is beyond repair while everything is still at work: in this order of reading nothing can explain it."""
        rows = "SELECT {sId}, {sStatus} FROM ai_op_queue WHERE {sStatus} <> 'pending'"
        executed = {str(op_id) for op_id, status in self._all(self._queue, rows) if status == "success"}
        counts = Counter(str(op_id) for (op_id,) in self._all(self._erp, "SELECT {sOpId} FROM effects"))
        failed = {str(op_id) for op_id, status in self._all(self._queue, rows) if status == "fail"}
        found = [f"{op_id}: success, 0 effects" for op_id in executed - counts.keys()]
        found += [f"{op_id}: fail, {counts[op_id]} effects" for op_id in failed & counts.keys()]
        return found + [f"{op_id}: {count} effects" for op_id, count in counts.items() if count > 1]

    def come_to_rest(self, keeper: Keeper, door: Door) -> float:
        """Wait until nothing is pending, ending by hand what waits for a person; seconds it took, at most 120."""
        begun = time.monotonic()
        while (took := time.monotonic() - begun) < _PATIENCE_S:
            keeper.tick()
            pending = self.pending()
            if not pending:
                return took
            for op_id, code in pending:
                if code in (C.WAITING_APPROVAL, C.WAITING_USER):
                    self._end_by_hand(door, op_id, code)
            time.sleep(_POLL_S)
        return took

    def _end_by_hand(self, door: Door, op_id: str, code: int) -> None:
        verb, user = ("approve", BOSS) if code == C.WAITING_APPROVAL else ("cancel", "u-lin")
        try:
            self._log.acted(verb, door.act(verb, op_id, user))
        except (Said, Unsure):
            self._log.count("not ended by hand")  # the next round looks again

    def verdict(self, heard: set[tuple[str, int, int]]) -> Verdict:
        """The oracle's, and what else clients were promised."""
        self._settle_what_was_not_answered()
        self._oracle.accept(self._log.accepted)
        found = self._oracle.verdict()
        checks: list[Callable[[], Iterator[str]]] = [
            self._what_clients_saw,
            self._what_persons_edited,
            self._what_was_confirmed,
            self._what_records_add_up_to,
        ]
        for check in checks:
            found.problems += check()
        events = self._all(self._queue, "SELECT {sOpId}, {iSeq}, {iStatusCode} FROM ai_op_event")
        never = heard - {(str(op_id), int(seq), int(code)) for op_id, seq, code in events}
        found.problems += [
            f"{op_id}: told of seq {seq}, code {code}: never committed" for op_id, seq, code in never
        ]
        found.problems += self._log.problems
        return found

    def reasons(self) -> Counter[str]:
        """Failures that may be retried, by what the row says and how many attempts it had."""
        columns = "{iStatusCode}, {sErrorMsg}, {iMaxAttempts}"
        rows = self._all(self._queue, f"SELECT {columns} FROM ai_op_queue WHERE {{sStatus}} = 'fail'")
        found = [row for row in rows if row[0] in RETRYABLE]
        return Counter(
            f"{code} {str(text).partition('(')[2].rstrip(')')} of {most}" for code, text, most in found
        )

    def moves(self) -> Counter[str]:
        """How often operations moved, by verb."""
        return Counter(str(verb) for (verb,) in self._all(self._queue, "SELECT {sVerb} FROM ai_op_event"))

    def shared_commits(self) -> int:
        """How many operations ended in one statement with another (their events have one time)."""
        finished = self._all(self._queue, "SELECT {tCreateDate} FROM ai_op_event WHERE {sVerb} = 'finish'")
        return sum(count for count in Counter(finished).values() if count > 1)

    def _settle_what_was_not_answered(self) -> None:
        """A confirm or an insert without an answer: if its rows are there, it was accepted."""
        rows = self._all(self._queue, "SELECT {sId}, {sPreparationId} FROM ai_op_queue")
        unanswered = self._log.sent.keys() - self._log.answered.keys()
        there = [
            str(op_id) for op_id, prepared in rows if prepared in unanswered or op_id in self._log.inserted
        ]
        self._log.accept(there)

    def _what_clients_saw(self) -> Iterator[str]:
        codes = {
            str(op_id): int(code)
            for op_id, code in self._all(self._queue, "SELECT {sId}, {iStatusCode} FROM ai_op_queue")
        }
        for op_id, code in self._log.ended.items():
            if codes.get(op_id) != code:
                yield f"{op_id}: a client was told {code}, which is final; it is {codes.get(op_id)}"
        for op_id in self._log.cancelled:
            if codes.get(op_id) != C.CANCELLED:
                yield f"{op_id}: a client was told it is cancelled; it is {codes.get(op_id)}"

    def _what_persons_edited(self) -> Iterator[str]:
        for op_id, note in self._all(self._erp, "SELECT {sOpId}, {sNote} FROM effects"):
            if self._log.notes.get(op_id, note) != note:
                yield f"{op_id}: confirmed as {self._log.notes[op_id]!r}, executed as {note!r}"

    def _what_was_confirmed(self) -> Iterator[str]:
        """Per preparation all of its operations or none, and never twice."""
        statement = (
            "SELECT {sPreparationId}, COUNT(*) FROM ai_op_queue"
            " WHERE {sPreparationId} IS NOT NULL GROUP BY {sPreparationId}"
        )
        counts = {str(prepared): int(count) for prepared, count in self._all(self._queue, statement)}
        for prepared, count in counts.items():
            if count != self._log.sent.get(prepared):
                yield f"preparation {prepared}: {count} rows, {self._log.sent.get(prepared)} operations were shown"

    def _what_records_add_up_to(self) -> Iterator[str]:
        """Each effect that was to change a record changed it once, and nothing else did."""
        notes = self._all(self._erp, "SELECT {sOpId}, {sNote} FROM effects")
        expected = Counter(locked_row(str(note)) for _, note in notes)
        for name, value in self._all(self._erp, "SELECT {sName}, {iValue} FROM effects_row"):
            if expected[str(name)] != value:
                yield f"record {name}: changed {value} times, {expected[str(name)]} effects say so"

    @staticmethod
    def _all(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
        """Rows of ``statement``, whose {column} names are quoted as this database does."""
        quote = engine.dialect.identifier_preparer.quote

        class Quoted(dict[str, str]):
            def __missing__(self, name: str) -> str:
                return quote(name)

        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement.format_map(Quoted())))]
