"""The oracle: did everything that was accepted happen exactly once, and does the queue say so?

It stands outside the product: plain SQL on the two databases and the list of ids a client was given. What it compares:
accepted ids, the ERP's append-only ``effects``, the ledger, the rows, and the fold of their events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

from staging.contracts.status import StatusCode
from staging.domain.lifecycle import TRANSITIONS, Verb
from staging.storage import audit

_SUCCESS = {StatusCode.EXECUTED, StatusCode.EXECUTED_BEFORE}
_IN_FLIGHT = {StatusCode.RUNNING, StatusCode.UNKNOWN}
_MOVES = {(str(m.verb), m.source, m.target) for m in TRANSITIONS}


@dataclass
class Verdict:
    """``problems``: one sentence per broken promise, empty when all are kept. ``codes``: rows by code."""

    problems: list[str] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    effects: int = 0

    def require_sound(self) -> Verdict:
        """AssertionError with the first problems, unless there are none."""
        if self.problems:
            shown = "\n  ".join(self.problems[:20])
            raise AssertionError(f"{len(self.problems)} broken promises ({dict(self.codes)}):\n  {shown}")
        return self


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    tenant: str
    key: str
    status: str
    code: int
    seq: int
    attempt: int
    max_attempts: int
    token: str | None


@dataclass(frozen=True, slots=True)
class _Event:
    seq: int
    verb: str
    status: str
    code: int


class Oracle:
    """``accept`` every id a client was given; ``verdict`` once everything has come to rest."""

    def __init__(self, queue_url: str, erp_url: str) -> None:
        # Plain engines, not the product's; a connection each time, so that servers may be killed in between.
        self._queue = create_engine(queue_url, poolclass=NullPool)
        self._erp = create_engine(erp_url, poolclass=NullPool)
        self.accepted: set[str] = set()

    def accept(self, ids: Iterable[str]) -> None:
        self.accepted |= set(ids)

    def forget(self) -> None:
        """Start anew (the tables were emptied)."""
        self.accepted = set()

    def codes(self, ids: Iterable[str] | None = None) -> Counter[int]:
        """Rows by code, of ``ids`` or of all that were accepted."""
        wanted = set(ids) if ids is not None else self.accepted
        return Counter(row.code for row in self._rows().values() if row.id in wanted)

    def pending(self) -> int:
        """How many accepted operations have not come to an end (missing ones included)."""
        with self._queue.connect() as connection:
            quote = connection.dialect.identifier_preparer.quote
            done = connection.execute(
                text(f"SELECT {quote('sId')} FROM ai_op_queue WHERE {quote('sStatus')} <> 'pending'")
            )
            return len(self.accepted - {row[0] for row in done})

    def effects(self, op_id: str) -> int:
        """How often the operation took effect in the ERP."""
        return self._effects(self._erp)[0][op_id]

    def verdict(self, *, resting: Iterable[StatusCode] = ()) -> Verdict:
        """Compare everything. ``resting``: codes of 1xx that are a fair place to be now (103 …; all, in mid-run)."""
        rows, events = self._rows(), self._events()
        by_op, by_key = self._effects(self._erp)
        ledger = self._ledger()
        found = Verdict(codes=Counter(row.code for row in rows.values()), effects=sum(by_op.values()))
        say = found.problems.append
        for op_id in sorted(self.accepted - rows.keys()):
            say(f"{op_id}: accepted, and lost")
        for op_id in sorted(by_op.keys() - self.accepted):
            say(f"{op_id}: took effect, and nobody had accepted it")
        for (tenant, key), count in sorted(by_key.items()):
            if count > 1:
                say(f"key {key} of {tenant}: {count} effects")
        for row in rows.values():
            where = f"{row.id} ({row.status} {row.code})"
            for problem in _row_problems(row, set(resting)):
                say(f"{where}: {problem}")
            for problem in _event_problems(row, events[row.id]):
                say(f"{where}: {problem}")
            for problem in _effect_problems(row, by_op[row.id], ledger.get((row.tenant, row.key))):
                say(f"{where}: {problem}")
        found.problems += self._audit_problems()
        return found

    # --- what the databases hold -----------------------------------------------------------------------------------

    def _rows(self) -> dict[str, _Row]:
        names = ["sId", "sBrandsId", "sIdempotencyKey", "sStatus", "iStatusCode", "iSeq"]
        names += ["iAttempt", "iMaxAttempts", "sLeaseToken"]
        with self._queue.connect() as connection:
            found = connection.execute(text(f"SELECT {_list(connection, names)} FROM ai_op_queue")).all()
        return {r[0]: _Row(r[0], r[1], r[2] or r[0], *r[3:]) for r in found}

    def _events(self) -> dict[str, list[_Event]]:
        names = ["sOpId", "iSeq", "sVerb", "sStatus", "iStatusCode"]
        with self._queue.connect() as connection:
            columns, order = _list(connection, names), _list(connection, names[:2])
            found = connection.execute(text(f"SELECT {columns} FROM ai_op_event ORDER BY {order}")).all()
        events: dict[str, list[_Event]] = defaultdict(list)
        for row in found:
            events[row[0]].append(_Event(*row[1:]))
        return events

    def _effects(self, erp: Engine) -> tuple[Counter[str], Counter[tuple[str, str]]]:
        tenants = {row.id: row.tenant for row in self._rows().values()}
        with erp.connect() as connection:
            found = connection.execute(
                text(f"SELECT {_list(connection, ['sOpId', 'sKey'])} FROM effects")
            ).all()
        return Counter(r[0] for r in found), Counter((tenants.get(r[0], "?"), r[1]) for r in found)

    def _ledger(self) -> dict[tuple[str, str], str]:
        names = ["sBrandsId", "sIdempotencyKey", "sOpId"]
        with self._erp.connect() as connection:
            found = connection.execute(text(f"SELECT {_list(connection, names)} FROM ai_op_ledger")).all()
        return {(r[0], r[1]): r[2] for r in found}

    def _audit_problems(self) -> list[str]:
        with self._queue.connect() as connection:
            return [f"audit chain {b.chain}: entry {b.seq} {b.reason}" for b in audit.verify(connection)]


def _list(connection: Connection, names: Iterable[str]) -> str:
    return ", ".join(connection.dialect.identifier_preparer.quote(name) for name in names)


def _row_problems(row: _Row, resting: set[StatusCode]) -> Iterable[str]:
    code = StatusCode.of(row.code)
    if code is None or code.status != row.status:
        yield "status and code do not belong together"
        return
    if not code.is_terminal and code not in resting:
        yield "has not come to an end"
    if row.token is not None and code not in _IN_FLIGHT:
        yield "nobody runs it, and it holds a lease"
    if row.attempt > row.max_attempts:
        yield f"attempt {row.attempt} of {row.max_attempts}"


def _event_problems(row: _Row, events: list[_Event]) -> Iterable[str]:
    if [e.seq for e in events] != list(range(1, row.seq + 1)):
        yield f"iSeq is {row.seq}, events are {[e.seq for e in events]}"
    if events and (events[-1].status, events[-1].code) != (row.status, row.code):
        yield f"the newest event says {events[-1].status} {events[-1].code}"
    source: StatusCode | None = None
    for event in events:
        if source is None and event.verb != Verb.SUBMIT:
            source = StatusCode.SUBMITTED  # a row of foreign SQL begins at 100
        target = StatusCode.of(event.code)
        if (event.verb, source, target) not in _MOVES:
            yield f"event {event.seq}: {event.verb} from {source!r} to {target!r} is no legal move"
        source = target


def _effect_problems(row: _Row, effects: int, ledger_op: str | None) -> Iterable[str]:
    code = StatusCode.of(row.code)
    if code is StatusCode.EXECUTED and (effects, ledger_op) != (1, row.id):
        yield f"{effects} effects, ledger names {ledger_op}"
    if code is StatusCode.EXECUTED_BEFORE and (effects or ledger_op is None):
        yield f"said to be executed before: {effects} effects of its own, ledger names {ledger_op}"
    if code in _IN_FLIGHT and effects <= 1:
        return  # committed or not: that is what nobody knows yet
    if code not in _SUCCESS and (effects or ledger_op == row.id):
        yield f"not executed, and yet {effects} effects, ledger names {ledger_op}"
