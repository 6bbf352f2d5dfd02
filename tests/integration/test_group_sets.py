"""Operations executed as a set: what strikes one of them is still nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine

from staging.contracts.status import StatusCode as C
from staging.domain.ports import ErpTransaction, Execution, Outcome
from staging.settings import Settings
from tests.support.alarm import TimeLimit, raising_after
from tests.support.effects_adapter import EffectsAdapter
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only
from workers.executor import Executor

pytestmark = only(lambda kind, shared: shared)
WRITE, BUG, EXIT = {"do": "write"}, {"do": "bug"}, {"do": "exit"}
REFUSE = {"do": "refuse", "code": "business_rule"}
FORGET = "forget"


class SetAdapter(EffectsAdapter):
    """Takes sets; one whose note is ``forget`` is left without an outcome there. ``sizes``: how many came at once."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.sizes: list[int] = []

    def in_sets(self, execution: Execution) -> bool:
        return True

    def apply_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> list[Outcome]:
        self.sizes.append(len(executions))
        outcomes = super().apply_all(tx, executions)
        return [o for o, e in zip(outcomes, executions, strict=True) if e.payload["note"] != FORGET]


def build_adapter(_settings: Settings, engine: Engine) -> SetAdapter:
    return SetAdapter(engine)


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    made = make_world(
        group_commit_s="30", hand_back_after_s="60", erp_adapter=f"{__name__}:build_adapter", max_attempts="3"
    )
    made.wipe()
    made.executor = Executor(
        made.store, made.adapter, made.teller, made.settings, made.reconciler, time_limit=(TimeLimit,)
    )
    made.run(made.stage())
    return made


def sizes(world: World) -> list[int]:
    assert isinstance(world.adapter, SetAdapter)
    return world.adapter.sizes


def test_those_of_a_kind_that_follow_each_other_are_one_set(world: World) -> None:
    ids = [world.stage() for _ in range(3)]
    other = world.stage(command_type="test.effects.update")
    world.run(other)
    again = world.stage(command_type="test.effects.update")
    assert world.run(*ids, again, world.stage()) == 5
    assert sizes(world) == [3, 1, 1]
    assert world.oracle.verdict().require_sound().codes == {200: 7}


def test_one_refused_in_the_middle_of_a_set_fails_and_the_others_go_through(world: World) -> None:
    first, bad, last = world.stage(), world.stage(WRITE, REFUSE), world.stage()
    assert world.run(first, bad, last) == 3
    assert [world.code(i) for i in (first, bad, last)] == [C.EXECUTED, C.RULE_REFUSED, C.EXECUTED]
    assert world.oracle.verdict().require_sound().codes == {200: 3, 422: 1}


@pytest.mark.parametrize("what", ["bug", "forgotten"])
def test_a_bug_and_an_outcome_too_few_undo_the_set_and_each_is_executed_alone(
    world: World, what: str
) -> None:
    odd = world.stage(WRITE, BUG) if what == "bug" else world.stage(note=FORGET)
    ids = [world.stage(), odd, world.stage()]
    assert world.run(*ids) == 3
    assert [world.code(i) for i in ids] == [
        C.EXECUTED,
        C.UNEXPECTED if what == "bug" else C.EXECUTED,
        C.EXECUTED,
    ]
    assert world.oracle.verdict().require_sound().codes == ({200: 3, 500: 1} if what == "bug" else {200: 4})


def test_the_time_limit_in_a_set_writes_nobody_off_and_next_time_each_is_alone(world: World) -> None:
    ids = [world.stage(), world.stage(WRITE, {"do": "sleep", "ms": 3000}), world.stage()]
    with raising_after(0.5, TimeLimit()), pytest.raises(TimeLimit):
        world.run(*ids)
    assert [(o.code, o.attempt) for o in map(world.read, ids)] == [(100, 1)] * 3
    assert sizes(world) == [3]
    world.set(ids, tNotBefore=None)
    with raising_after(0.5, TimeLimit()), pytest.raises(TimeLimit):
        world.run(*ids)
    assert world.code(ids[1]) is C.TIMED_OUT, "alone, it is known who used the time up"
    assert [o.status_code for o in world.settle(ids[0], ids[2])] == [C.EXECUTED] * 2
    assert sizes(world) == [3]
    world.oracle.verdict().require_sound()


def test_a_set_that_ends_its_process_every_time_runs_out_of_attempts(
    world: World, flag: Callable[[str], str]
) -> None:
    count = {"do": "append", "file": flag("starts")}
    ids = [world.stage(count, WRITE, EXIT) for _ in range(2)]
    for _ in range(5):  # once together, then each twice
        world.set([i for i in ids if world.code(i) is C.SUBMITTED], tNotBefore=None)
        with pytest.raises(SystemExit):
            world.run(*ids)
    assert world.run(*ids) == 0
    assert [world.code(i) for i in ids] == [C.UNEXPECTED] * 2
    assert Path(flag("starts")).read_bytes() == b"....."
    world.oracle.verdict().require_sound()


def test_whoever_has_a_single_attempt_is_in_no_set(make_world: MakeWorld) -> None:
    world = make_world(group_commit_s="30", erp_adapter=f"{__name__}:build_adapter", max_attempts="1")
    world.wipe()
    world.run(world.stage())
    assert world.run(*[world.stage(max_attempts=1) for _ in range(3)]) == 3
    assert sizes(world) == []
    world.oracle.verdict().require_sound()
