"""The lifecycle under any order of events, on real storage (SQLite) with the real executor, the oracle after each step.

Workers claim, stall, die and come back, clocks run out, people cancel, approve and retry on what they saw a while ago.

``OPSTAGE_MACHINE_EXAMPLES`` / ``OPSTAGE_MACHINE_STEPS`` make a longer run (nightly: 2000 and 100).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import integers, sampled_from

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Actor, ActorKind
from staging.domain.lifecycle import TRANSITIONS, Verb
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter, ErpTransaction
from staging.storage import claims, operations
from staging.storage.dialect import db_now_plus
from tests.support.effects_adapter import EffectsAdapter
from tests.support.queue_rows import TENANT
from tests.support.waiting import wait_until
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only
from workers.executor import Executor
from workers.outcomes import Done
from workers.reconciler import Reconciler
from workers.sweeper import Sweeper

EXAMPLES = int(os.environ.get("OPSTAGE_MACHINE_EXAMPLES", "60"))
STEPS = int(os.environ.get("OPSTAGE_MACHINE_STEPS", "30"))
PENDING = [code for code in C if not code.is_terminal]
RESTING = [C.WAITING_USER, C.WAITING_APPROVAL]
BOSS = Actor(TENANT, "u-boss", ActorKind.PERSON)
Plant: TypeAlias = "Callable[[Lifecycle], None]"
OUTCOMES: dict[str, list[dict[str, Any]]] = {
    "executed": [],
    "refused": [{"do": "write"}, {"do": "refuse", "code": "business_rule"}],
    "broken": [{"do": "write"}, {"do": "bug"}],
    "unlucky": [{"do": "write"}, {"do": "transient"}],
}
# What a person or the sweeper may try on a row as they saw it. Claims and ends are the executor's.
_PEOPLES_VERBS = (Verb.CANCEL, Verb.APPROVE, Verb.REJECT, Verb.EXPIRE, Verb.RETRY)
PEOPLES = [m for m in TRANSITIONS if m.verb in _PEOPLES_VERBS]


class FatedAdapter(EffectsAdapter):
    """Its next COMMIT is lost: before or after the database did it."""

    fate = ""

    @contextmanager
    def transaction(self) -> Iterator[ErpTransaction]:
        with super().transaction() as tx:
            yield _FatedTransaction(self, tx) if self.fate else tx


class _FatedTransaction:
    def __init__(self, adapter: FatedAdapter, tx: ErpTransaction) -> None:
        self._adapter, self._tx, self.connection = adapter, tx, tx.connection

    def commit(self) -> None:
        fate, self._adapter.fate = self._adapter.fate, ""
        if fate == "lost after":
            self._tx.commit()
        raise ConnectionError(fate)

    def rollback(self) -> None:
        self._tx.rollback()


class MortalExecutor(Executor):
    """May die between the ERP's commit and the write-back."""

    dies = False

    def _end(self, operation: Operation, done: Done) -> None:
        if not self.dies:
            super()._end(operation, done)


class Lifecycle(RuleBasedStateMachine):
    """``ids``: operations; ``held``: what a worker claimed, until it runs it; ``seen``: rows as read earlier."""

    ids: Bundle[str] = Bundle("ids")
    held: Bundle[Operation] = Bundle("held")
    seen: Bundle[Operation] = Bundle("seen")

    def __init__(self, world: World, plant: Plant | None = None) -> None:
        """``plant`` breaks a part on purpose: what the machine then has to find."""
        super().__init__()
        world.wipe()
        self.world = world
        self.adapter = FatedAdapter(world.erp)
        adapter = cast(ErpAdapter, self.adapter)
        self.reconciler = Reconciler(world.store, adapter, world.teller, world.settings)
        self.executor = MortalExecutor(world.store, adapter, world.teller, world.settings, self.reconciler)
        self.sweeper = Sweeper(world.store, self.reconciler, world.teller, world.dispatcher, world.settings)
        if plant is not None:
            plant(self)
        self.keys: dict[str, str] = {}
        self.tokens: dict[str, list[str]] = {}
        self.ended: dict[str, Operation] = {}

    # --- what comes in ---------------------------------------------------------------------------------------------

    @rule(
        target=ids,
        key=integers(0, 5),
        outcome=sampled_from(sorted(OUTCOMES)),
        code=sampled_from([C.SUBMITTED, C.SUBMITTED, C.WAITING_USER, C.WAITING_APPROVAL, C.WAITING_OTHER]),
        attempts=integers(1, 3),
    )
    def confirm(self, key: int, outcome: str, code: C, attempts: int) -> Any:
        """A key that is taken inserts nothing; whoever repeats a confirm gets the first row."""
        name = f"key-{key}"
        row = self.world.row(*OUTCOMES[outcome], idempotency_key=name, code=code, max_attempts=attempts)
        if name in self.keys:
            with pytest.raises(operations.KeyTaken):
                self.world.confirm(row)
            return multiple()
        self.keys[name] = row.id
        return self.world.confirm(row)[0]

    @rule(target=ids, auto=sampled_from([0, 1]))
    def insert_by_foreign_sql(self, auto: int) -> str:
        return self.world.foreign(bAutoExecute=auto)

    # --- workers ---------------------------------------------------------------------------------------------------

    @rule(target=held, op_id=ids)
    def claim(self, op_id: str) -> Any:
        claimed = self.executor._claim([op_id])
        return claimed[0] if claimed else multiple()

    @rule(operation=consumes(held))
    def run(self, operation: Operation) -> None:
        """At once, or long after its lease was taken over."""
        self.executor._run(operation)

    @rule(operation=consumes(held), fate=sampled_from(["lost before", "lost after"]))
    def run_and_lose_the_line_in_commit(self, operation: Operation, fate: str) -> None:
        self.adapter.fate = fate
        self.executor._run(operation)
        self.adapter.fate = ""

    @rule(operation=consumes(held))
    def run_and_die_before_the_write_back(self, operation: Operation) -> None:
        self.executor.dies = True
        self.executor._run(operation)
        self.executor.dies = False

    @rule(operation=consumes(held))
    def die(self, operation: Operation) -> None:
        """Nothing more is heard of this worker."""

    @rule(operation=consumes(held))
    def hand_back(self, operation: Operation) -> None:
        self.executor._release([operation])

    @rule(operation=held)
    def renew(self, operation: Operation) -> None:
        now = self.world.read(operation.id)
        mine = now.lease_token == operation.lease_token and now.code == C.RUNNING
        held, _ = self.world.store.transact(
            lambda unit: claims.renew(unit.connection, [operation.id], operation.lease_token or "", 60)
        )
        assert held == int(mine)

    @rule(op_ids=sampled_from([1, 2, 3]))
    def deliver_a_message(self, op_ids: int) -> None:
        """Twice the same ids, and one that does not exist."""
        ids = [*self.keys.values()][:op_ids]
        self.executor.run_batch([*ids, "unknown", *ids])

    # --- time ------------------------------------------------------------------------------------------------------

    @rule(op_id=ids)
    def let_the_lease_lapse(self, op_id: str) -> None:
        if self.world.read(op_id).lease_token:
            self.world.lapse(op_id)

    def pending(self, op_id: str) -> bool:
        return self.world.read(op_id).status == "pending"

    @rule(op_id=ids)
    def let_the_backoff_pass(self, op_id: str) -> None:
        if self.pending(op_id):
            self.world.set([op_id], tNotBefore=None)

    @rule(op_id=ids)
    def let_the_offer_expire(self, op_id: str) -> None:
        if self.pending(op_id):
            self.world.set([op_id], tExpireAt=db_now_plus(-1))

    @rule()
    def sweep(self) -> None:
        self.sweeper.sweep()

    # --- people ----------------------------------------------------------------------------------------------------

    @rule(target=seen, op_id=ids)
    def look(self, op_id: str) -> Operation:
        return self.world.read(op_id)

    @rule(row=seen, move=sampled_from(PEOPLES))
    def act_on_what_was_seen(self, row: Operation, move: Any) -> None:
        if row.status_code is not move.source:
            return
        now = self.world.read(row.id)
        changes = {"iAttempt": 0, "tExpireAt": None, "tNotBefore": None} if move.verb is Verb.RETRY else None
        moved, _ = self.world.store.transact(
            lambda unit: operations.move(
                unit.connection, move.verb, row, move.target, actor=BOSS, changes=changes
            )
        )
        assert moved == (now.seq == row.seq)
        if moved and move.verb is Verb.RETRY:
            self.ended.pop(row.id, None)

    # --- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def the_oracle_is_content(self) -> None:
        self.world.oracle.verdict(resting=PENDING).require_sound()

    @invariant()
    def tokens_never_come_back_and_terminal_is_terminal(self) -> None:
        with self.world.store.read() as connection:
            rows = operations.by_ids(connection, sorted(self.world.oracle.accepted))
        for row in rows:
            tokens = self.tokens.setdefault(row.id, [])
            if row.lease_token and row.lease_token not in tokens[-1:]:
                assert row.lease_token not in tokens
                tokens.append(row.lease_token)
            assert self.ended.get(row.id, row) == row
            code = row.status_code
            if code is not None and code.is_terminal:
                self.ended[row.id] = row

    def teardown(self) -> None:
        """All workers die; then everything comes to an end, or to rest with a person."""

        def at_rest() -> bool:
            ids = sorted(self.world.oracle.accepted)
            self.world.set(ids, tNotBefore=None)
            self.world.lapse(*ids)
            self.sweeper.sweep()
            self.executor.run_batch(ids)
            return set(self.world.oracle.codes()) <= {c for c in C if c.is_terminal} | set(RESTING)

        if self.world.oracle.accepted:
            wait_until(at_rest, 30, "everything comes to rest")
        self.world.oracle.verdict(resting=RESTING).require_sound()


@pytest.mark.timeout(600)
@only(lambda kind, shared: kind == "sqlite")
def test_any_order_of_events_keeps_every_promise(make_world: MakeWorld) -> None:
    world = make_world(lock_timeout_s="0.05", backoff_base_s="0.001", backoff_max_s="0.001")
    run_state_machine_as_test(
        lambda: Lifecycle(world),  # type: ignore[arg-type]  # any callable does
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


# --- bugs planted on purpose: an oracle that does not find them proves nothing ----------------------------------------


def unknown_is_taken_for_absent(machine: Lifecycle) -> None:
    machine.reconciler._lookup = lambda operation: None  # type: ignore[method-assign]


def a_lost_lease_is_not_noticed(machine: Lifecycle) -> None:
    machine.executor._holds = lambda operation: True  # type: ignore[method-assign]
    machine.adapter.ledger.is_fenced = lambda *_: False  # type: ignore[method-assign]


def the_ledger_is_not_asked_either(machine: Lifecycle) -> None:
    a_lost_lease_is_not_noticed(machine)
    ledger: Any = machine.adapter.ledger
    insert_first = ledger.insert_first

    def blind(*arguments: Any) -> None:
        insert_first(*arguments)

    ledger.insert_first = blind


def die_after_the_commit(machine: Lifecycle, op_id: str) -> None:
    machine.run_and_die_before_the_write_back(machine.claim(op_id))
    machine.let_the_lease_lapse(op_id)
    machine.sweep()


def come_back_late(machine: Lifecycle, op_id: str) -> None:
    late = machine.claim(op_id)
    machine.let_the_lease_lapse(op_id)
    machine.sweep()
    machine.run(late)


def come_back_after_somebody_else_did_it(machine: Lifecycle, op_id: str) -> None:
    late = machine.claim(op_id)
    machine.let_the_lease_lapse(op_id)
    machine.sweep()
    machine.let_the_backoff_pass(op_id)
    machine.run(machine.claim(op_id))
    machine.run(late)


@pytest.mark.parametrize(
    ("plant", "story"),
    [
        (unknown_is_taken_for_absent, die_after_the_commit),
        (a_lost_lease_is_not_noticed, come_back_late),
        (the_ledger_is_not_asked_either, come_back_after_somebody_else_did_it),
    ],
)
@only(lambda kind, shared: kind == "sqlite" and not shared)
def test_the_oracle_finds_a_planted_bug(
    world: World, plant: Plant, story: Callable[[Lifecycle, str], None]
) -> None:
    def play(machine: Lifecycle) -> None:
        story(machine, str(machine.confirm(key=1, outcome="executed", code=C.SUBMITTED, attempts=3)))
        machine.the_oracle_is_content()
        machine.tokens_never_come_back_and_terminal_is_terminal()

    play(Lifecycle(world))
    with pytest.raises(AssertionError, match="effects"):
        play(Lifecycle(world, plant))
