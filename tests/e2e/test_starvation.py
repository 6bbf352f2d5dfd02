"""Nobody waits for a neighbour: not for one that kills its worker, runs long, comes in thousands or holds a lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Tenant
from tests.support.effects_adapter import effects, effects_row
from tests.support.fixtures import StartWorker
from tests.support.processes import BeatProcess
from tests.support.waiting import wait_until
from tests.support.world import DEPLOYED, World
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
OTHER = Tenant("B002", "S01")


def all_ended(world: World) -> Callable[[], bool]:
    return lambda: world.oracle.pending() == 0


def effect_number(world: World, op_id: str) -> int:
    with world.erp.connect() as connection:
        number = connection.execute(
            select(effects.c.iId).where(effects.c.sOpId == op_id)
        ).scalar_one_or_none()
    return int(number or 0)


def effects_so_far(world: World) -> int:
    with world.erp.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(effects)).scalar_one())


@pytest.mark.parametrize(("kind", "shared"), [("postgresql", False), ("sqlite", True)])
def test_a_payload_that_kills_its_worker_runs_out_of_attempts_while_others_wait_for_no_lease(
    open_world: MakeWorld,
    start_mortal_worker: StartWorker,
    start_beat: StartBeat,
    flag: Callable[[str], str],
    kind: str,
    shared: bool,
) -> None:
    world = open_world(kind, shared=shared, **DEPLOYED)
    start_mortal_worker(world.env, concurrency=2)
    start_beat(world.env)
    deadly = world.row({"do": "append", "file": flag("starts")}, {"do": "signal", "name": "SIGKILL"})
    others = [world.row() for _ in range(50)]
    world.confirm(*others[:5], deadly, *others[5:])
    wait_until(all_ended(world), 60, "all come to an end long before a lease would lapse", poll_s=0.25)
    assert len(Path(flag("starts")).read_bytes()) == world.settings.max_attempts
    killer = world.read(deadly.id)
    assert (killer.status_code, killer.attempt) == (C.UNEXPECTED, world.settings.max_attempts)
    assert f"{world.settings.max_attempts}x" in (killer.error_message or "")
    assert world.oracle.verdict().require_sound().codes == {200: 50, 500: 1}


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_short_operations_do_not_wait_for_a_long_one_of_their_batch(
    open_world: MakeWorld,
    start_mortal_worker: StartWorker,
    flag: Callable[[str], str],
    kind: str,
) -> None:
    world = open_world(kind, shared=True, **DEPLOYED)
    start_mortal_worker(world.env, concurrency=2)
    long = world.row(
        {"do": "touch", "file": flag("begun")}, {"do": "wait", "file": flag("end"), "ms": 60_000}
    )
    short = [world.row() for _ in range(9)]
    world.confirm(long, *short)
    wait_until(Path(flag("begun")).exists, 20, "the long one has begun")
    ids = [row.id for row in short]
    wait_until(lambda: world.oracle.codes(ids) == {200: 9}, 30, "the short ones end while it runs")
    assert world.code(long.id) is C.RUNNING
    assert {world.read(i).attempt for i in ids} == {1}
    Path(flag("end")).touch()
    wait_until(all_ended(world), 20, "the long one ends")
    assert world.oracle.verdict().require_sound().codes == {200: 10}


@pytest.mark.parametrize(("kind", "count"), [("postgresql", 5000), ("mariadb", 3000), ("sqlite", 1500)])
def test_the_single_operation_of_one_tenant_does_not_wait_for_the_thousands_of_another(
    open_world: MakeWorld, start_mortal_worker: StartWorker, kind: str, count: int
) -> None:
    world = open_world(kind, shared=True, **DEPLOYED)
    for _ in range(count // 500):
        world.confirm(*(world.row() for _ in range(500)))
    start_mortal_worker(world.env, concurrency=2)
    wait_until(lambda: effects_so_far(world) > 0, 30, "they are being worked through", poll_s=0.02)
    before = effects_so_far(world)
    single = world.stage(tenant=OTHER)
    wait_until(lambda: world.code(single) is C.EXECUTED, 60, "the single one is executed", poll_s=0.02)
    ahead = effect_number(world, single) - before
    assert ahead < count / 10, f"{ahead} of {count} came first"
    assert effects_so_far(world) < count, "the thousands were still waiting"


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_lock_held_by_somebody_else_ends_in_423_within_bounds_and_half_applies_nothing(
    open_world: MakeWorld, start_mortal_worker: StartWorker, start_beat: StartBeat, kind: str
) -> None:
    world = open_world(kind, shared=True)
    start_mortal_worker(world.env, concurrency=2)
    start_beat(world.env)
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with world.erp.begin() as connection:
            mine = update(effects_row).where(effects_row.c.sName == "b").values(iValue=100)
            connection.execute(mine)
            held.set()
            over.wait(60)
            connection.rollback()

    outsider = threading.Thread(target=hold)
    outsider.start()
    try:
        assert held.wait(10)
        blocked = world.stage({"do": "write"}, {"do": "lock", "row": "a"}, {"do": "lock", "row": "b"})
        free = [world.stage({"do": "lock", "row": "a"}) for _ in range(5)]
        wait_until(all_ended(world), 60, "all come to an end although the lock is held", poll_s=0.1)
    finally:
        over.set()
        outsider.join()
    locked = world.read(blocked)
    assert (locked.status_code, locked.attempt) == (C.LOCKED, world.settings.max_attempts)
    assert world.effects(blocked) == 0
    assert world.value("a") == len(free), "nothing of the refused one is left"
    assert world.oracle.verdict().require_sound().codes == {200: 5, 423: 1}
