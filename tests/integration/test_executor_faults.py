"""Locks, deadlocks, limits and shutdowns before COMMIT: nothing half-applied, tried again where that helps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from staging.contracts.status import StatusCode as C
from staging.domain.errors import Transient
from tests.support.alarm import TimeLimit, raising_after
from tests.support.effects_adapter import effects_row
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld
from workers.executor import Executor

Flag = Callable[[str], str]
WRITE = {"do": "write"}


def test_a_statement_that_takes_too_long_is_stopped_by_the_database_and_is_504(make_world: MakeWorld) -> None:
    world = make_world(lock_timeout_s="0.2", statement_timeout_s="0.4")
    world.wipe()
    op_id = world.stage(WRITE, {"do": "sql_sleep", "ms": 5000})
    world.run(op_id)
    done = world.read(op_id)
    assert (done.status_code, done.attempt) == (C.TIMED_OUT, 1)
    world.oracle.verdict().require_sound()
    assert [o.status_code for o in world.settle(world.stage())] == [C.EXECUTED]


def test_a_record_locked_by_somebody_else_for_too_long_is_423_and_nothing_is_half_applied(
    world: World, flag: Flag
) -> None:
    op_id = world.stage(
        {"do": "append", "file": flag("starts")}, WRITE, {"do": "lock", "row": "b"}, {"do": "lock", "row": "a"},
        max_attempts=2,
    )  # fmt: skip
    with world.erp.begin() as other:
        other.execute(update(effects_row).where(effects_row.c.sName == "a").values(iValue=7))
        if world.kind == "sqlite" and world.shared:
            # One file, one write lock: not even a claim can be written. Nothing is lost by it.
            with pytest.raises(Transient):
                world.run(op_id)
            assert world.code(op_id) is C.SUBMITTED
        else:
            (done,) = world.settle(op_id)
            assert (done.status_code, done.attempt) == (C.LOCKED, 2)
            assert world.verbs(op_id) == ["submit", "claim", "back_off", "claim", "finish"]
            # SQLite's lock is the whole file's, so that no attempt got as far as the adapter.
            starts = Path(flag("starts"))
            assert (starts.read_bytes() if starts.exists() else b"") == (
                b"" if world.kind == "sqlite" else b".."
            )
        other.rollback()
    assert (world.value("a"), world.value("b")) == (0, 0)
    assert world.effects(op_id) == 0


def test_a_record_let_go_between_two_attempts_is_no_problem(world: World) -> None:
    op_id = world.stage(WRITE, {"do": "lock", "row": "a"})
    one_file = world.kind == "sqlite" and world.shared
    with world.erp.begin() as other:
        other.execute(update(effects_row).where(effects_row.c.sName == "a").values(iValue=7))
        if one_file:
            with pytest.raises(Transient):  # not even a claim can be written: see above
                world.run(op_id)
        else:
            world.run(op_id)
            waiting = world.read(op_id)
            assert (waiting.status_code, waiting.attempt) == (C.SUBMITTED, 1)
            assert waiting.not_before is not None
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1 if one_file else 2)
    assert world.value("a") == 8
    world.oracle.verdict().require_sound()


def test_of_two_operations_in_a_deadlock_one_is_tried_again_and_both_are_executed(
    make_world: MakeWorld, flag: Flag
) -> None:
    world = make_world(lock_timeout_s="2", statement_timeout_s="3", soft_time_limit_s="6", hard_time_limit_s="7",
                       lease_s="9")  # fmt: skip
    world.wipe()
    if world.kind == "postgresql":
        with world.erp.connect() as connection:
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            connection.execute(text(f"ALTER DATABASE {name} SET deadlock_timeout = '50ms'"))
            connection.commit()
        world.erp.dispose()
    meet = [{"do": "touch", "file": flag("one")}, {"do": "wait", "file": flag("two")}]
    if world.kind == "sqlite":
        meet = []  # one writer at a time: the two can only queue up
    one = world.stage(WRITE, {"do": "lock", "row": "a"}, *meet, {"do": "lock", "row": "b"})
    meet = [{"do": "touch", "file": flag("two")}, {"do": "wait", "file": flag("one")}] if meet else []
    two = world.stage(WRITE, {"do": "lock", "row": "b"}, *meet, {"do": "lock", "row": "a"})
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(world.run, (one, two))) == 2
    done = world.settle(one, two)
    assert [o.status_code for o in done] == [C.EXECUTED, C.EXECUTED]
    assert sum(o.attempt for o in done) == (2 if world.kind == "sqlite" else 3)
    assert (world.value("a"), world.value("b")) == (2, 2)
    told = [e.message for i in (one, two) for e in world.events(i) if e.verb == "back_off"]
    assert all("deadlock" in message for message in told)
    world.oracle.verdict().require_sound()


@pytest.mark.parametrize("busy", ["sleep", "sql_sleep"])
def test_the_soft_time_limit_is_504_ends_the_task_and_hands_back_the_rest(
    make_world: MakeWorld, busy: str
) -> None:
    world = make_world(hand_back_after_s="60")
    world.wipe()
    executor = Executor(
        world.store, world.adapter, world.teller, world.settings, world.reconciler, time_limit=(TimeLimit,)
    )
    if world.kind == "sqlite":
        busy = (
            "sleep"  # Python cannot be struck inside SQLite: what it runs there ends by the statement's limit
        )
    slow = world.stage(WRITE, {"do": busy, "ms": 5000})
    first, last = world.stage(), world.stage()
    with raising_after(0.6, TimeLimit()), pytest.raises(TimeLimit):
        executor.run_batch([first, slow, last])
    assert [world.code(i) for i in (first, slow, last)] == [C.EXECUTED, C.TIMED_OUT, C.SUBMITTED]
    assert world.read(last).attempt == 0
    # The connection the limit struck in may be in any state: nobody may get it from the pool again.
    assert [o.status_code for o in world.settle(last, world.stage())] == [C.EXECUTED, C.EXECUTED]
    world.oracle.verdict().require_sound()


def test_a_shutdown_in_mid_execution_undoes_it_counts_the_attempt_and_hands_back_the_rest(
    world: World, flag: Flag
) -> None:
    leave = {"do": "once", "file": flag("left"), "steps": [{"do": "exit"}]}
    running, last = world.stage(WRITE, leave), world.stage()
    with pytest.raises(SystemExit):
        world.run(running, last)
    assert [(o.code, o.attempt) for o in map(world.read, (running, last))] == [(100, 1), (100, 0)]
    assert [o.status_code for o in world.settle(running, last)] == [C.EXECUTED, C.EXECUTED]
    world.oracle.verdict().require_sound()


def test_an_operation_that_ends_its_process_every_time_runs_out_of_attempts(world: World, flag: Flag) -> None:
    op_id = world.stage({"do": "append", "file": flag("starts")}, WRITE, {"do": "exit"})
    for _ in range(3):
        world.set([op_id], tNotBefore=None)
        with pytest.raises(SystemExit):
            world.run(op_id)
    assert world.run(op_id) == 0
    assert Path(flag("starts")).read_bytes() == b"..."
    assert world.code(op_id) is C.UNEXPECTED
    world.oracle.verdict().require_sound()


def test_a_long_batch_renews_the_leases_of_those_that_still_wait(make_world: MakeWorld, flag: Flag) -> None:
    world = make_world(hand_back_after_s="60")
    world.wipe()
    slow = [
        world.stage({"do": "sleep", "ms": 400}) for _ in range(5)
    ]  # together more than a third of a lease
    look = {"do": "touch", "file": flag("last")}
    last = world.stage(look)
    claimed: dict[str, Any] = {}

    class Watching(Executor):
        def _renew(self, rest: Any) -> None:
            claimed["before"] = world.read(last).lease_until
            super()._renew(rest)
            claimed["after"] = world.read(last).lease_until

    executor = Watching(world.store, world.adapter, world.teller, world.settings, world.reconciler)
    assert executor.run_batch([*slow, last]) == 6
    assert (claimed["after"] - claimed["before"]).total_seconds() > 1.0
    world.oracle.verdict().require_sound()
