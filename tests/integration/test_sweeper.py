"""Whatever died, was lost or waits is found by a sweep; any number of sweepers may run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from staging.contracts.status import StatusCode as C
from staging.storage.dialect import db_now_plus
from staging.storage.tables import op_dependency
from tests.support.private import EmbeddedRedis
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only

pytestmark = only(lambda kind, shared: shared)  # nothing here touches the ERP but by way of the reconciler


def announced(world: World, redis: EmbeddedRedis) -> int:
    """Messages that wait in the queue of the workers."""
    client = redis.client()
    try:
        return int(client.llen(world.settings.queue_name))
    finally:
        client.close()


@pytest.fixture
def broker(session_redis: EmbeddedRedis) -> EmbeddedRedis:
    """The broker, emptied."""
    client = session_redis.client()
    client.flushall()
    client.close()
    return session_redis


def test_a_row_whose_announcement_was_lost_is_announced_again(
    make_world: MakeWorld, broker: EmbeddedRedis
) -> None:
    world = make_world(announce_after_s="30")
    world.wipe()
    op_id = world.stage()
    client = broker.client()
    client.flushall()
    client.close()
    assert world.sweeper.sweep().announced == 0  # its confirm has only just announced it
    world.set([op_id], tCreateDate=db_now_plus(-31))
    assert world.sweeper.sweep().announced == 1
    assert announced(world, broker) == 1


def test_a_row_of_foreign_sql_is_announced_at_once(world: World, broker: EmbeddedRedis) -> None:
    world.foreign()
    assert world.sweeper.sweep().announced == 1
    assert announced(world, broker) == 1


def test_a_row_whose_backoff_is_over_is_announced(world: World) -> None:
    op_id = world.stage({"do": "transient"})
    world.run(op_id)
    world.set([op_id], tNotBefore=db_now_plus(60))
    assert world.sweeper.sweep().announced == 0
    world.set([op_id], tNotBefore=db_now_plus(-1))
    assert world.sweeper.sweep().announced == 1


@pytest.mark.parametrize("code", [C.SUBMITTED, C.WAITING_USER, C.WAITING_APPROVAL, C.WAITING_OTHER])
def test_what_waits_past_its_time_expires_and_says_so(world: World, code: C) -> None:
    late = world.stage(code=code, expires_in_s=-1.0)
    in_time = world.stage(code=code, expires_in_s=60.0, not_before=datetime.now(UTC) + timedelta(hours=1))
    assert world.sweeper.sweep().expired == 1
    expired = world.read(late)
    assert (expired.status_code, expired.error_code) == (C.EXPIRED, "expired")
    assert expired.error_message
    assert world.code(in_time) is code
    assert world.verbs(late) == ["submit", "expire"]


def test_a_foreign_row_nobody_took_in_expires_as_well(world: World) -> None:
    op_id = world.foreign(tExpireAt="2020-01-01 00:00:00")
    assert world.sweeper.sweep().expired == 1
    assert world.code(op_id) is C.EXPIRED
    assert [e.seq for e in world.events(op_id)] == [1]
    world.oracle.verdict().require_sound()


def test_what_a_worker_holds_does_not_expire_under_it(world: World) -> None:
    op_id = world.stage()
    world.claim(op_id)
    world.set([op_id], tExpireAt=db_now_plus(-1))
    assert world.sweeper.sweep().expired == 0
    assert world.code(op_id) is C.RUNNING


def test_an_operation_goes_on_when_all_it_depends_on_succeeded(world: World) -> None:
    one, two = world.stage(), world.stage()
    last = world.stage(code=C.WAITING_OTHER, depends_on=(one, two))
    assert world.run(last) == 0
    world.settle(one)
    assert world.sweeper.sweep().released == 0
    world.settle(two)
    assert world.settle(last)[0].status_code is C.EXECUTED
    assert world.verbs(last)[:3] == ["submit", "release", "claim"]
    world.oracle.verdict().require_sound()


@pytest.mark.parametrize(
    ("needs_approval", "auto", "code"),
    [(True, True, C.WAITING_APPROVAL), (True, False, C.WAITING_APPROVAL), (False, False, C.WAITING_USER)],
)
def test_an_operation_goes_on_to_where_its_policy_sends_it(
    world: World, needs_approval: bool, auto: bool, code: C
) -> None:
    op_id = world.stage(code=C.WAITING_OTHER, needs_approval=needs_approval, auto_execute=auto)
    world.sweeper.sweep()
    assert world.code(op_id) is code


def test_a_failed_dependency_is_424_without_waiting_for_the_others(world: World) -> None:
    failing, slow = world.stage({"do": "refuse", "code": "business_rule"}), world.stage(code=C.WAITING_USER)
    last = world.stage(code=C.WAITING_OTHER, depends_on=(failing, slow))
    after = world.stage(code=C.WAITING_OTHER, depends_on=(last,))
    world.run(failing)
    world.sweeper.sweep()
    failed = world.read(last)
    assert failed.status_code is C.DEPENDENCY_FAILED
    assert failed.error_message
    world.sweeper.sweep()
    assert world.code(after) is C.DEPENDENCY_FAILED
    assert world.effects(last) + world.effects(after) == 0


def test_a_dependency_that_does_not_exist_is_424(world: World) -> None:
    op_id = world.stage(code=C.WAITING_OTHER, depends_on=("no-such-operation",))
    world.sweeper.sweep()
    assert world.code(op_id) is C.DEPENDENCY_FAILED


def test_a_dependency_added_by_plain_sql_counts(world: World) -> None:
    slow, op_id = world.stage(code=C.WAITING_USER), world.stage(code=C.WAITING_OTHER)
    with world.queue.begin() as connection:
        connection.execute(insert(op_dependency).values(sOpId=op_id, sDependsOnId=slow))
    assert world.sweeper.sweep().released == 0


def test_an_operation_waits_for_its_time(world: World) -> None:
    op_id = world.stage(code=C.WAITING_OTHER, not_before=datetime.now(UTC) + timedelta(minutes=1))
    assert world.sweeper.sweep().released == 0
    world.set([op_id], tNotBefore=db_now_plus(-1))
    assert world.sweeper.sweep().released == 1
    assert world.settle(op_id)[0].status_code is C.EXECUTED


def test_many_that_wait_for_something_slow_do_not_hide_one_that_may_go_on(make_world: MakeWorld) -> None:
    world = make_world(sweep_batch="3")
    world.wipe()
    slow = world.stage(code=C.WAITING_USER)
    for _ in range(5):
        world.stage(code=C.WAITING_OTHER, depends_on=(slow,))
    free = world.stage(code=C.WAITING_OTHER)
    assert world.sweeper.sweep().released == 1
    assert world.code(free) is C.SUBMITTED


def test_three_sweepers_at_once_do_what_one_does(world: World) -> None:
    expiring = [world.stage(expires_in_s=-1.0) for _ in range(6)]
    waiting = [world.stage(code=C.WAITING_OTHER) for _ in range(6)]
    lost = [world.stage() for _ in range(6)]
    for op_id in lost:
        world.claim(op_id)
    world.lapse(*lost)
    with ThreadPoolExecutor(3) as pool:  # in several rounds, should one run out of its time
        swept = list(pool.map(lambda _: world.sweeper.sweep(), range(9)))
    assert (sum(s.expired for s in swept), sum(s.released for s in swept)) == (6, 6)
    assert {tuple(world.verbs(i)) for i in expiring} == {("submit", "expire")}
    assert {tuple(world.verbs(i)) for i in waiting} == {("submit", "release")}
    assert {tuple(world.verbs(i)) for i in lost} == {("submit", "claim", "lose", "resolve")}
    world.settle(*waiting, *lost)
    world.oracle.verdict().require_sound()


def test_a_sweep_moves_no_legacy_row(world: World) -> None:
    op_id = world.foreign(sStatus="confirmed", iStatusCode=100, tExpireAt="2020-01-01 00:00:00")
    before = world.read(op_id)
    world.sweeper.sweep()
    world.run(op_id)
    assert world.read(op_id) == before
