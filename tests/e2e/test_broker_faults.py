"""The broker is a hint: dead, frozen, emptied or forged, it loses nothing, doubles nothing and holds nobody up (I7)."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Queue  # type: ignore[attr-defined]

from staging.contracts.status import StatusCode as C
from staging.domain.identity import new_id
from staging.messaging.celery_dispatcher import EXECUTE_TASK
from staging.services.control import ControlService
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedRedis
from tests.support.processes import BeatProcess
from tests.support.waiting import wait_until
from tests.support.world import PERSON, World
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
ANSWER_S = 2.0  # what a confirm may take with a broker that does not answer


def wait_for_the_end(world: World, timeout_s: float = 60.0) -> None:
    wait_until(lambda: world.oracle.pending() == 0, timeout_s, "everything comes to an end", poll_s=0.25)


def confirm_in_time(world: World) -> None:
    begun = time.monotonic()
    op_id = world.stage()
    took_s = time.monotonic() - begun
    assert took_s < ANSWER_S, f"a confirm took {took_s:.1f} s"
    assert world.code(op_id) is C.SUBMITTED


@pytest.fixture
def world(open_world: MakeWorld) -> World:
    return open_world("postgresql", shared=True)


def test_with_the_broker_dead_a_confirm_answers_and_the_operation_runs_once_it_is_back(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    start_mortal_worker(world.env)
    start_beat(world.env)
    world.stage()
    wait_for_the_end(world)
    private_redis.kill9()
    for _ in range(3):
        confirm_in_time(world)
    private_redis.restart()
    wait_for_the_end(world)
    assert world.oracle.verdict().require_sound().codes == {200: 4}


def test_with_the_broker_frozen_a_confirm_answers_and_the_operation_runs_once_it_thaws(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    start_mortal_worker(world.env)
    start_beat(world.env)
    world.stage()
    wait_for_the_end(world)
    private_redis.pause()
    try:
        for _ in range(2):
            confirm_in_time(world)
    finally:
        private_redis.resume()
    wait_for_the_end(world)
    assert world.oracle.verdict().require_sound().codes == {200: 3}


def test_all_messages_lost_with_rows_queued_and_in_work_is_made_good_by_the_sweeper(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    start_mortal_worker(world.env)
    for _ in range(30):
        world.stage({"do": "sleep", "ms": 20})
    wait_until(lambda: world.oracle.codes()[C.EXECUTED] > 0, 20, "the first one is executed")
    client = private_redis.client()
    client.flushall()
    client.close()
    start_beat(world.env)
    wait_for_the_end(world)
    assert world.oracle.verdict().require_sound().codes == {200: 30}
    client = private_redis.client()
    keys = [str(key) for key in client.keys("*")]
    client.close()
    assert not [key for key in keys if "result" in key or "task-meta" in key], keys  # nobody asks for results


def test_a_broker_killed_in_mid_work_neither_loses_nor_doubles(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker, start_beat: StartBeat
) -> None:
    start_mortal_worker(world.env, concurrency=2)
    start_beat(world.env)
    world.confirm(*(world.row({"do": "sleep", "ms": 20}) for _ in range(60)))
    wait_until(lambda: world.oracle.codes()[C.EXECUTED] > 0, 20, "the first one is executed")
    for _ in range(2):
        private_redis.kill9()
        private_redis.restart()
    wait_for_the_end(world)
    assert world.oracle.verdict().require_sound().codes == {200: 60}


class _Touch:
    """Unpickling it makes a folder."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._path,)


def test_forged_messages_do_nothing_and_the_worker_goes_on(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_mortal_worker(world.env)
    done, waiting = world.stage(), world.stage(code=C.WAITING_APPROVAL)
    users, stopped = world.stage(code=C.WAITING_USER), world.stage(code=C.WAITING_USER)
    ControlService(world.store, world.adapter, world.teller).cancel(PERSON, stopped)
    resting = (done, waiting, users, stopped)
    wait_until(lambda: world.code(done) is C.EXECUTED, 20, "it is executed")
    before = [world.read(i) for i in resting]
    proof = tmp_path / "unpickled"
    forged: list[Any] = [
        [[*resting, new_id(), "'; DROP TABLE ai_op_queue; --", "\0", "x" * 5000]],
        [[{"id": done}, None, 1, ["nested"]]],
        ["not a list"],
        [None],
        [],
        [[done], "too many"],
    ]
    with Connection(private_redis.url) as connection:  # type: ignore[no-untyped-call]
        send = connection.Producer().publish
        for arguments in forged:
            send([arguments, {}, {}], **_as_task(world, EXECUTE_TASK))
        send([[[done]], {}, {}], **_as_task(world, "os.system"))
        body = pickle.dumps([[[done]], {"x": _Touch(str(proof))}, {}])
        task = _as_task(world, EXECUTE_TASK)
        send(body, **{**task, "content_type": "application/x-python-serialize", "content_encoding": "binary"})
        for kind in ("application/x-yaml", "application/x-msgpack"):
            send(b"[]", **{**task, "content_type": kind, "content_encoding": "utf-8"})
    worker.wait_for_log("Received unregistered task of type 'os.system'", 20)
    worker.wait_for_log("Refusing to deserialize untrusted content of type pickle", 20)
    worker.wait_for_log("Refusing to deserialize untrusted content of type yaml", 20)
    last = world.stage()
    wait_until(lambda: world.code(last) is C.EXECUTED, 30, "the worker goes on")
    assert worker.alive()
    assert not proof.exists()
    assert "psycopg" not in worker.log()  # nothing that cannot be an id reached the database
    assert [world.read(i) for i in resting] == before
    assert [world.effects(i) for i in resting] == [1, 0, 0, 0]
    world.oracle.verdict(resting=[C.WAITING_APPROVAL, C.WAITING_USER]).require_sound()


def test_what_is_no_message_at_all_ends_the_worker_and_is_gone_when_it_is_started_again(
    world: World, private_redis: EmbeddedRedis, start_mortal_worker: StartWorker
) -> None:
    # Celery's own reading of its queue: only whoever has the broker's password can do this, and a supervisor mends it.
    worker = start_mortal_worker(world.env)
    client = private_redis.client()
    client.lpush(world.settings.queue_name, "not even a message")
    client.close()
    worker.wait_exit(20)
    op_id = world.stage()
    worker.start()
    wait_until(lambda: world.code(op_id) is C.EXECUTED, 20, "the worker goes on")


def _as_task(world: World, name: str) -> dict[str, Any]:
    headers = {
        "task": name,
        "id": new_id(),
        "lang": "py",
        "argsrepr": "",
        "kwargsrepr": "",
        "root_id": new_id(),
    }
    return {
        "routing_key": world.settings.queue_name,
        "headers": headers,
        "correlation_id": new_id(),
        "declare": [Queue(world.settings.queue_name)],  # type: ignore[no-untyped-call]
    }
