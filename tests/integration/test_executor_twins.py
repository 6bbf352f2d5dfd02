"""One effect per key: repeated messages, racing executors, two operations with one key, a worker back from the dead."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from sqlalchemy import delete

from staging.contracts.status import StatusCode as C
from staging.storage.tables import op_queue
from tests.support.queue_rows import TENANT
from tests.support.run_once import RunOnce
from tests.support.waiting import wait_until
from tests.support.world import World

Stopped = Callable[[World, str, str], RunOnce]


def test_a_message_that_comes_twice_or_names_an_id_twice_executes_once(world: World) -> None:
    op_id = world.stage()
    assert world.run(op_id, op_id) == 1
    assert world.run(op_id) == 0
    world.oracle.verdict().require_sound()


def test_executors_racing_for_the_same_ids_execute_each_once(world: World) -> None:
    ids = [world.stage() for _ in range(20)]
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda n: world.run(*ids[n * 5 :], *ids[: n * 5]), range(4)))
    assert sum(counts) == 20
    assert world.oracle.codes() == {200: 20}
    world.oracle.verdict().require_sound()


def test_another_operation_with_the_same_key_and_content_gets_the_first_result(world: World) -> None:
    key = "key-1"
    first = world.stage(idempotency_key=key)
    world.run(first)
    second = _after_the_first_is_archived(world, first, key)
    world.run(second)
    again = world.read(second)
    assert (again.status_code, again.result_bill_id) == (C.EXECUTED_BEFORE, f"bill-{first}")
    assert again.result_message == "完成"
    assert (world.effects(first), world.effects(second)) == (1, 0)


def test_another_operation_with_the_same_key_and_other_content_is_409_and_does_nothing(world: World) -> None:
    key = "key-1"
    first = world.stage(idempotency_key=key)
    world.run(first)
    second = _after_the_first_is_archived(world, first, key, note="other content")
    world.run(second)
    refused = world.read(second)
    assert (refused.status_code, refused.error_code) == (C.CONFLICT, "idempotency_conflict")
    assert (world.effects(first), world.effects(second)) == (1, 0)


def test_a_key_is_the_tenants_own_and_differs_by_case(world: World) -> None:
    other = replace(TENANT, brands_id="B002")
    ids = [world.stage(idempotency_key=key, tenant=tenant) for key, tenant in
           [("Key", TENANT), ("key", TENANT), ("Key", other)]]  # fmt: skip
    world.run(*ids)
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 3
    world.oracle.verdict().require_sound()


def _after_the_first_is_archived(world: World, first: str, key: str, note: str = "") -> str:
    with world.queue.begin() as connection:
        connection.execute(delete(op_queue).where(op_queue.c.sId == first))
    return world.stage(idempotency_key=key, note=note)


@pytest.fixture
def stopped_at(tmp_path: Path) -> Iterator[Stopped]:
    """``stopped_at(world, window, op_id)`` → a worker process that claimed the operation and was stopped there."""
    started: list[RunOnce] = []

    def start(world: World, window: str, op_id: str) -> RunOnce:
        env = {**world.env, "OPSTAGE_FAILPOINTS": f"{window}:stop"}
        process = RunOnce(env, [op_id], tmp_path / f"stale-{window}.log")
        started.append(process)
        status = psutil.Process(process.pid).status
        wait_until(lambda: status() == psutil.STATUS_STOPPED, 20, f"stopped at {window}")
        return process

    yield start
    for process in started:
        process.close()


@pytest.mark.parametrize("window", ["W4", "W6", "W7"])
def test_a_worker_that_slept_past_its_lease_can_commit_nothing(
    world: World, stopped_at: Stopped, window: str
) -> None:
    op_id = world.stage()
    stale = stopped_at(world, window, op_id)
    if world.kind == "sqlite" and world.shared and window == "W6":
        # It holds the file's only write lock, so that nobody can take the lease over: it is not stale at all.
        world.sweeper.sweep()
        assert world.code(op_id) is C.RUNNING
        stale.send(signal.SIGCONT)
        assert stale.wait_exit(20) == 0
        assert world.read(op_id).attempt == 1
        world.oracle.verdict().require_sound()
        return
    if not (world.shared and window == "W7"):
        world.lapse(op_id)
    world.sweeper.sweep()
    # W4: nothing began, proven by the ledger. W6: its ledger row is locked, so nobody knows. W7: it is all committed.
    expected = {"W4": C.SUBMITTED, "W6": C.UNKNOWN, "W7": C.EXECUTED}[window]
    assert world.code(op_id) is expected
    if window == "W4":
        assert world.settle(op_id)[0].attempt == 2
    before = world.read(op_id)
    stale.send(signal.SIGCONT)
    assert stale.wait_exit(20) == 0
    assert "claimed 1" in stale.log()
    assert world.read(op_id) == before
    assert world.effects(op_id) == (0 if window == "W6" else 1)
    if window == "W6":
        world.lapse(op_id)
        assert world.settle(op_id)[0].attempt == 2
    if not (world.shared and window == "W7"):
        assert "lease was taken over" in stale.log()
    world.oracle.verdict().require_sound()
