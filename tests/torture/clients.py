"""Clients: agents prepare, persons confirm several times at once, edit, cancel, retry, approve; and foreign SQL."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from staging.contracts.status import RETRYABLE, StatusCode
from staging.domain.identity import new_id
from staging.domain.intake import dump_json
from staging.domain.ports import Dispatcher
from tests.support.effects_adapter import APPROVED_FORM, CLOSED_FORM, FORM
from tests.support.queue_rows import foreign_insert
from tests.torture.doors import BOSS, USER, Door, Said, Seen, Unsure
from tests.torture.log import ClientLog

_TRIES, _PAUSE_S = 6, 0.3
# Refusals that are a fair answer to what these clients do to each other, and to a Redis that forgets.
_FAIR: Set[str] = {"preparation_not_found_or_expired", "idempotency_conflict", "state_conflict"}


class Client:
    """One thread's worth of doing; ``step`` does one thing, chosen by its own seed."""

    def __init__(
        self,
        seed: str,
        doors: Sequence[Door],
        log: ClientLog,
        pool: ThreadPoolExecutor,
        foreign: Engine,
        dispatcher: Dispatcher,
        stopped: threading.Event,
        payload: Callable[[random.Random], dict[str, Any]],
    ) -> None:
        self._rng = random.Random(seed)
        self._doors, self._log, self._pool, self._foreign = doors, log, pool, foreign
        self._dispatcher, self._stopped, self._make = dispatcher, stopped, payload
        self._mine: list[str] = []

    def step(self) -> None:
        deeds: list[tuple[Callable[[], None], int]] = [
            (self._confirm_at_once, 30),
            (self._confirm_with_edits, 12),
            (self._confirm_several, 12),
            (self._cancel_while_it_is_claimed, 14),
            (self._have_it_approved, 6),
            (self._insert_foreign_rows, 12),
            (self._retry_what_failed, 8),
            (self._announce_again, 5),
            (self._cancel_what_has_not_begun, 6),
            (self._look_again, 5),
        ]
        (deed,) = self._rng.choices([d for d, _ in deeds], [weight for _, weight in deeds])
        deed()

    # --- deeds -----------------------------------------------------------------------------------------------------

    def _confirm_at_once(self) -> None:
        """The same preparation, by several at the same moment."""
        prepared = self._prepare(FORM, [self._payload()])
        if prepared:
            self._confirm_all(prepared, 1, [None] * self._rng.randint(1, 5))

    def _confirm_with_edits(self) -> None:
        """Several at once, each with other edits: one of them is what is executed (I2)."""
        payload = self._payload()
        prepared = self._prepare(FORM, [payload])
        if prepared:
            edits = [f"edited {n} {payload['note']}" for n in range(self._rng.randint(1, 3))]
            self._confirm_all(prepared, 1, [*edits, edits[0]])

    def _confirm_several(self) -> None:
        """Several operations in one transaction, announced in one message: a worker claims them together."""
        payloads = [self._payload() for _ in range(self._rng.randint(2, 8))]
        prepared = self._prepare(FORM, payloads)
        if prepared:
            self._confirm_all(prepared, len(payloads), [None, None])

    def _cancel_while_it_is_claimed(self) -> None:
        prepared = self._prepare(FORM, [self._payload()])
        if not prepared:
            return
        for op_id in self._confirm_all(prepared, 1, [None]):
            time.sleep(self._rng.uniform(0, 0.05))
            self._at_once([self._acting("cancel", op_id) for _ in range(self._rng.randint(1, 3))])

    def _cancel_what_has_not_begun(self) -> None:
        """Also what began once, and was lost or put back: whoever still holds it must not execute it."""
        for op_id in self._rng.sample(self._mine, min(3, len(self._mine))):
            if any(seen.code == StatusCode.SUBMITTED for seen in self._looking(op_id)):
                self._at_once([self._acting("cancel", op_id)])

    def _have_it_approved(self) -> None:
        prepared = self._prepare(APPROVED_FORM, [self._payload()])
        if not prepared:
            return
        for op_id in self._confirm_all(prepared, 1, [None, None]):
            verbs = self._rng.choices(["approve", "reject", "cancel"], [6, 2, 2], k=2)
            self._at_once([self._acting(v, op_id, USER if v == "cancel" else BOSS) for v in verbs])

    def _insert_foreign_rows(self) -> None:
        for _ in range(self._rng.randint(1, 4)):
            op_id = new_id()
            values: dict[str, Any] = {
                "sId": op_id,
                "sTargetFormId": FORM,
                "sPayload": dump_json(self._payload()),
            }
            odd = self._rng.random()
            if odd < 0.08:
                values["sPayload"] = '{"steps": [], "steps": []}'
            elif odd < 0.16:
                values["sTargetFormId"] = self._rng.choice([CLOSED_FORM, "no_such_form"])
            elif odd < 0.22 and self._mine:
                values["sIdempotencyKey"] = self._rng.choice(self._mine)  # taken by a row of its own, perhaps
            self._insert(op_id, values)

    def _insert(self, op_id: str, values: dict[str, Any]) -> None:
        self._log.inserting(op_id)
        for _ in range(_TRIES):
            try:
                with self._foreign.begin() as connection:
                    foreign_insert(connection, **values)
            except IntegrityError:
                return  # it is there already, or its key is: the verdict looks
            except SQLAlchemyError:
                if self._stopped.wait(_PAUSE_S):
                    return
                continue
            self._log.accept([op_id])
            self._log.count("foreign rows")
            self._mine.append(op_id)
            return

    def _retry_what_failed(self) -> None:
        for op_id in self._rng.sample(self._mine, min(4, len(self._mine))):
            for seen in self._looking(op_id):
                if seen.code in RETRYABLE:
                    self._at_once([self._acting("retry", op_id) for _ in range(2)])

    def _announce_again(self) -> None:
        """Messages are hints: any number of them, for whatever."""
        some = self._rng.sample(self._mine, min(20, len(self._mine)))
        self._dispatcher.announce(some)
        self._log.count("superfluous messages")

    def _look_again(self) -> None:
        for op_id in self._rng.sample(self._mine, min(5, len(self._mine))):
            self._looking(op_id)

    # --- how -------------------------------------------------------------------------------------------------------

    def _payload(self) -> dict[str, Any]:
        return self._make(self._rng)

    def _prepare(self, form: str, payloads: Sequence[dict[str, Any]]) -> str:
        """Id of a preparation; "" where none could be had (Redis away, full, frozen)."""
        items = [{"formId": form, "opType": "create", "payload": payload} for payload in payloads]
        request: dict[str, Any] = dict(items[0]) if len(items) == 1 else {"items": items}
        try:
            prepared = self._rng.choice(self._doors).prepare(request)
        except Unsure:
            self._log.count("no preparation")
            self._stopped.wait(_PAUSE_S)
            return ""
        self._log.count("preparations")
        return prepared

    def _confirm_all(self, prepared: str, size: int, notes: Sequence[str | None]) -> Sequence[str]:
        """Confirm as often as there are ``notes`` (None: without edits), at once; ids, where there was an answer."""
        self._log.confirming(prepared, size)
        doors = [self._rng.choice(self._doors) for _ in notes]
        self._at_once([self._confirming(d, prepared, note) for d, note in zip(doors, notes, strict=True)])
        ids = self._log.answered.get(prepared, ())
        self._mine = (self._mine + list(ids))[-100:]
        return ids

    def _confirming(self, door: Door, prepared: str, note: str | None) -> Callable[[], None]:
        def confirm() -> None:
            edits = {} if note is None else {"note": note}
            self._log.confirmed(prepared, door.confirm(prepared, edits), note)
            self._log.count("confirms")

        return lambda: self._insist(confirm)

    def _acting(self, verb: str, op_id: str, user: str = USER) -> Callable[[], None]:
        door = self._rng.choice(self._doors)
        # To a second person an operation is there only as long as it waits for them.
        fair = _FAIR | {"operation_not_found"} if user == BOSS else _FAIR
        return lambda: self._insist(lambda: self._log.acted(verb, door.act(verb, op_id, user)), fair)

    def _looking(self, op_id: str) -> list[Seen]:
        try:
            seen = self._rng.choice(self._doors).look(op_id)
        except Unsure:
            return []
        except Said as refusal:
            # Accepted rows are there for ever; of a foreign insert that failed nobody knows.
            if op_id in self._log.accepted:
                self._log.problem(f"{op_id}: accepted, and answered with {refusal.code}")
            return []
        self._log.saw([seen])
        return [seen]

    def _insist(self, call: Callable[[], None], fair: Set[str] = _FAIR) -> None:
        """Until there is an answer, or the run is over."""
        for _ in range(_TRIES):
            try:
                call()
            except Unsure:
                self._log.count("no answer")
                if self._stopped.wait(_PAUSE_S):
                    return
            except Said as refusal:
                self._log.count(f"refused: {refusal.code}")
                if refusal.code not in fair:
                    self._log.problem(f"an unfair refusal: {refusal.code}")
                return
            else:
                return

    def _at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        running: list[Future[None]] = [self._pool.submit(call) for call in calls]
        for future in running:
            future.result()
