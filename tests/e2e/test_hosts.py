"""Workers on several hosts, which meet only in the database and at the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from staging.contracts.status import StatusCode as C
from staging.storage.engine import read_connection
from staging.storage.tables import audit_log
from tests.e2e.test_worker_processes import StartBeat, wait_for_the_end
from tests.support.hosts import HostWorker, require_hosts
from tests.support.waiting import wait_until
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld
from workers.holder import is_dead

StartHost = Callable[[World, str], HostWorker]


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """``start_host(world, "node-1")`` → its worker, ready."""
    require_hosts()
    started: list[HostWorker] = []

    def start(world: World, host: str) -> HostWorker:
        started.append(HostWorker(world.env, tmp_path, host))
        return started[-1].start()

    yield start
    for worker in started:
        if worker.alive():
            worker.kill_all()


def executed_by(world: World) -> Counter[str]:
    """Host → operations, by the audit log."""
    entries = select(audit_log.c.sActor).where(audit_log.c.sAction == "execute")
    with read_connection(world.queue) as connection:
        return Counter(actor.removeprefix("worker@") for actor in connection.execute(entries).scalars())


def test_hosts_share_a_backlog_and_each_operation_is_executed_by_one_of_them(
    open_world: MakeWorld, start_host: StartHost, start_beat: StartBeat
) -> None:
    world = open_world("postgresql", shared=True)
    for host in ("node-1", "node-2", "node-3"):
        start_host(world, host)
    for _ in range(90):
        world.stage({"do": "write"}, {"do": "sleep", "ms": 20})
    start_beat(world.env)
    wait_for_the_end(world, 60)
    assert world.oracle.verdict().require_sound().codes == {200: 90}
    by = executed_by(world)
    assert (set(by), by.total()) == ({"node-1", "node-2", "node-3"}, 90)


def test_a_host_that_is_gone_is_not_taken_for_dead_and_its_operation_runs_once_the_lease_is_over(
    open_world: MakeWorld, start_host: StartHost, start_beat: StartBeat, flag: Callable[[str], str]
) -> None:
    world = open_world("postgresql", shared=False)
    first = start_host(world, "node-1")
    busy = [{"do": "touch", "file": flag("begun")}, {"do": "sleep", "ms": 60_000}]
    op_id = world.stage({"do": "write"}, {"do": "once", "file": flag("once"), "steps": busy})
    wait_until(Path(flag("begun")).exists, 20, "it has begun")
    first.kill_all()
    token = world.read(op_id).lease_token
    assert world.code(op_id) == C.RUNNING
    assert token is not None
    assert not is_dead(token), "nobody here can know who lives on another host"
    start_host(world, "node-2")
    start_beat(world.env)
    world.lapse(op_id)
    wait_for_the_end(world, 60)
    assert world.oracle.verdict().require_sound().codes == {200: 1}
    assert executed_by(world) == {"node-2": 1}
    assert world.read(op_id).attempt == 2
