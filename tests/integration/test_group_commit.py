"""Quick operations of one tenant share a commit; what happens to one of them is nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Tenant
from tests.support.waiting import wait_until
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only

pytestmark = only(lambda kind, shared: shared)
OTHER = Tenant("B002", "S01")
WRITE, BUG = {"do": "write"}, {"do": "bug"}
REFUSE = {"do": "refuse", "code": "business_rule"}


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """An executor that has seen this kind of operation and knows it is quick (however busy the machine is)."""
    made = make_world(group_commit_s="30")
    made.wipe()
    made.run(made.stage())
    return made


@contextmanager
def counting_commits(world: World) -> Iterator[list[int]]:
    commits: list[int] = []

    def count(_: object) -> None:
        commits.append(1)

    event.listen(world.queue, "commit", count)
    try:
        yield commits
    finally:
        event.remove(world.queue, "commit", count)


def test_operations_of_one_tenant_share_one_commit_and_each_has_its_own_journal(world: World) -> None:
    ids = [world.stage(note=str(n)) for n in range(6)]
    with counting_commits(world) as commits:
        assert world.run(*ids) == 6
    assert len(commits) == 2, "one for the claim, one for all of them"
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 6
    assert [world.verbs(i) for i in ids] == [["submit", "claim", "finish"]] * 6
    assert {world.events(i)[-1].message for i in ids} == {"完成"}
    assert {world.read(i).attempt for i in ids} == {1}
    assert world.oracle.verdict().require_sound().codes == {200: 7}


def test_without_the_setting_each_has_a_commit_of_its_own(make_world: MakeWorld) -> None:
    world = make_world(group_commit_s="0")
    world.wipe()
    world.run(world.stage())
    ids = [world.stage() for _ in range(4)]
    with counting_commits(world) as commits:
        assert world.run(*ids) == 4
    assert len(commits) == 5
    world.oracle.verdict().require_sound()


def test_a_kind_of_operation_never_seen_before_is_run_alone_first(make_world: MakeWorld) -> None:
    world = make_world(group_commit_s="30")
    world.wipe()
    ids = [world.stage() for _ in range(4)]
    with counting_commits(world) as commits:
        assert world.run(*ids) == 4
    assert len(commits) == 3, "the claim, the first one, the rest"
    world.oracle.verdict().require_sound()


def test_tenants_do_not_share_a_commit(world: World) -> None:
    ids = [world.stage(), world.stage(), world.stage(tenant=OTHER), world.stage(tenant=OTHER)]
    with counting_commits(world) as commits:
        assert world.run(*ids) == 4
    assert len(commits) == 3
    assert world.oracle.verdict().require_sound().codes == {200: 5}


def test_of_a_group_the_refused_ones_fail_and_leave_nothing_and_the_others_succeed(world: World) -> None:
    good = [world.stage(note=str(n)) for n in range(3)]
    bad = [world.stage(WRITE, REFUSE) for _ in range(2)]
    ids = [good[0], bad[0], good[1], bad[1], good[2]]
    with counting_commits(world) as commits:
        assert world.run(*ids) == 5
    assert len(commits) == 2, "the claim, and all five ends"
    assert [world.code(i) for i in good] == [C.EXECUTED] * 3
    assert [world.read(i).error_code for i in bad] == ["business_rule"] * 2
    assert [world.effects(i) for i in bad] == [0, 0]
    assert [world.events(i)[-1].message for i in bad] == [world.read(i).error_message for i in bad]
    assert world.oracle.verdict().require_sound().codes == {200: 4, 422: 2}


def test_a_bug_in_one_undoes_the_group_and_the_others_are_executed_alone(world: World) -> None:
    first, broken, last = world.stage(), world.stage(WRITE, BUG), world.stage()
    assert world.run(first, broken, last) == 3
    assert [world.code(i) for i in (first, broken, last)] == [C.EXECUTED, C.UNEXPECTED, C.EXECUTED]
    assert {world.read(i).attempt for i in (first, broken, last)} == {1}
    assert world.oracle.verdict().require_sound().codes == {200: 3, 500: 1}


def test_a_repeat_of_what_was_executed_is_answered_within_a_group(world: World) -> None:
    ids = [world.stage() for _ in range(3)]
    world.run(*ids)
    for op_id in ids:  # as if the status had been lost: the ledger knows better
        world.set([op_id], sStatus="pending", iStatusCode=100, iAttempt=0)
    with counting_commits(world) as commits:
        assert world.run(*ids) == 3
    assert len(commits) == 2
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 3
    assert [world.effects(i) for i in ids] == [1, 1, 1]


def test_a_member_whose_lease_was_taken_over_is_not_committed_and_the_others_are(
    world: World, flag: Callable[[str], str]
) -> None:
    if world.kind == "sqlite":
        pytest.skip("one writer: nobody can take a lease while the group's transaction is open")
    slow = world.stage({"do": "touch", "file": flag("begun")}, {"do": "wait", "file": flag("go")})
    lost, last = world.stage(), world.stage()

    def take_over() -> None:
        wait_until(Path(flag("begun")).exists, 20, "the group has begun")
        world.set([lost], sLeaseToken="somebody-else")
        Path(flag("go")).touch()

    thief = threading.Thread(target=take_over)
    thief.start()
    assert world.run(slow, lost, last) == 3
    thief.join()
    assert [world.code(i) for i in (slow, lost, last)] == [C.EXECUTED, C.RUNNING, C.EXECUTED]
    assert [world.effects(i) for i in (slow, lost, last)] == [1, 0, 1]
