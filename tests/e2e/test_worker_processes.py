"""Real workers told to stop, struck by limits, killed by what they run: whatever was accepted happens exactly once.

What dies at which window of an execution: test_crash_matrix.py."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlalchemy import make_url, text

from staging.contracts.status import StatusCode as C
from tests.support.fixtures import StartWorker
from tests.support.processes import BeatProcess
from tests.support.waiting import wait_until
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
HELD = {C.RUNNING, C.UNKNOWN}


def wait_for_the_end(
    world: World, timeout_s: float = 120.0, *, each_time: Callable[[], None] = lambda: None
) -> None:
    def ended() -> bool:
        each_time()
        return world.oracle.pending() == 0

    wait_until(ended, timeout_s, "everything comes to an end", poll_s=0.25)


def lapse_what_the_dead_hold(world: World) -> None:
    """Instead of waiting for it. Should a live worker hold one of them, it loses its lease, which must do no harm."""
    held = [i for i in world.oracle.accepted if world.read(i).status_code in HELD]
    world.lapse(*held)


def test_told_to_stop_it_finishes_what_it_began_and_leaves_the_rest_untouched(
    open_world: MakeWorld, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    world = open_world("postgresql", shared=True)
    first = start_mortal_worker(world.env, name="first")
    ids = [world.stage({"do": "sleep", "ms": 100}) for _ in range(60)]
    wait_until(lambda: C.EXECUTED in world.oracle.codes(), 20, "the first one is executed")
    done_before = world.oracle.codes()[C.EXECUTED]
    first.send(signal.SIGTERM)
    assert first.wait_exit(15) == 0
    codes = world.oracle.codes()
    assert set(codes) == {C.EXECUTED, C.SUBMITTED}
    assert codes[C.EXECUTED] - done_before < 5, "what was under way, and what ended while we looked"
    start_mortal_worker(world.env, name="second")
    start_beat(world.env)
    wait_for_the_end(world)
    assert {world.read(i).attempt for i in ids} == {1}
    assert world.oracle.verdict().require_sound().codes == {200: 60}


def test_a_cold_shutdown_in_mid_execution_undoes_it_and_it_runs_again(
    open_world: MakeWorld,
    start_mortal_worker: StartWorker,
    start_beat: StartBeat,
    flag: Callable[[str], str],
) -> None:
    world = open_world("postgresql", shared=False)
    first = start_mortal_worker(world.env, name="first")
    busy = [{"do": "touch", "file": flag("begun")}, {"do": "sleep", "ms": 1500}]
    op_id = world.stage({"do": "write"}, {"do": "once", "file": flag("once"), "steps": busy})
    wait_until(Path(flag("begun")).exists, 20, "it has begun")
    first.send(signal.SIGQUIT)
    first.wait_exit(20)
    lapse_what_the_dead_hold(world)
    start_mortal_worker(world.env, name="second")
    start_beat(world.env)
    wait_for_the_end(world)
    assert world.read(op_id).attempt <= 2
    assert world.oracle.verdict().require_sound().codes == {200: 1}


def test_the_soft_time_limit_ends_an_operation_that_takes_too_long_and_the_worker_goes_on(
    open_world: MakeWorld, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    world = open_world("sqlite", shared=True)
    start_mortal_worker(world.env)
    start_beat(world.env)
    slow = world.stage({"do": "write"}, {"do": "sleep", "ms": 20_000})
    quick = world.stage()
    wait_for_the_end(world)
    assert (world.code(slow), world.code(quick)) == (C.TIMED_OUT, C.EXECUTED)
    world.oracle.verdict().require_sound()


def test_each_child_has_its_connection_before_its_first_operation(
    open_world: MakeWorld, start_mortal_worker: StartWorker
) -> None:
    world = open_world("postgresql", shared=True)
    start_mortal_worker(world.env, name="fresh", concurrency=3)
    of_workers = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'opstage-worker' AND datname = current_database()"
    )

    def connected() -> int:
        with world.erp.connect() as connection:
            return int(connection.execute(of_workers).scalar_one())

    wait_until(lambda: connected() == 3, 20, "each child has looked at the queue")


def test_a_worker_starts_while_its_database_does_not_answer(
    open_world: MakeWorld, start_mortal_worker: StartWorker
) -> None:
    world = open_world("postgresql", shared=True)
    away = make_url(world.env["OPSTAGE_DATABASE_URL"]).set(port=1).render_as_string(hide_password=False)
    worker = start_mortal_worker(world.env | {"OPSTAGE_DATABASE_URL": away}, name="alone")
    wait_until(lambda: "database not reached at start" in worker.log(), 20, "it says so")
    assert worker.alive()
