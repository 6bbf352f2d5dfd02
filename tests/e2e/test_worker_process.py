"""The harness's worker and beat are what ``opstage worker`` and ``opstage beat`` start, and can be killed for good."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.fixtures import StartWorker
from tests.support.processes import BeatProcess, gone
from tests.support.waiting import wait_until


@pytest.fixture
def env(redis_url: str, sqlite_database: str, tmp_path: Path) -> dict[str, str]:
    return {
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_DATABASE_URL": sqlite_database,
        "OPSTAGE_DATA_DIR": str(tmp_path / "data"),
    }


def test_a_killed_worker_takes_its_children_along(env: dict[str, str], start_worker: StartWorker) -> None:
    worker = start_worker(env, concurrency=2)
    children = worker.child_pids()
    assert len(children) == 2
    worker.kill9()
    wait_until(lambda: all(gone(pid) for pid in children), 10, "the pool's processes are gone")


def test_a_killed_child_is_replaced(env: dict[str, str], start_worker: StartWorker) -> None:
    worker = start_worker(env, concurrency=1)
    (first,) = worker.child_pids()
    os.kill(first, signal.SIGKILL)
    wait_until(
        lambda: len(worker.child_pids()) == 1 and worker.child_pids() != [first],
        15,
        "the pool starts a new child",
    )
    assert worker.alive()


def test_a_worker_told_to_stop_ends_by_itself_and_leaves_nothing(
    env: dict[str, str], start_worker: StartWorker
) -> None:
    worker = start_worker(env, concurrency=2)
    family = [worker.pid, *worker.child_pids()]
    worker.send(signal.SIGTERM)
    assert worker.wait_exit(20) == 0
    assert all(gone(pid) for pid in family)


def test_the_broker_password_is_not_in_the_workers_log(
    env: dict[str, str], redis_url: str, start_worker: StartWorker
) -> None:
    password = redis_url.split(":")[2].split("@")[0]
    worker = start_worker(env)
    assert " ready." in worker.log()
    assert password not in worker.log()


def test_beat_starts_again_after_it_was_killed(
    env: dict[str, str], start_beat: Callable[[Mapping[str, str]], BeatProcess]
) -> None:
    beat = start_beat({**env, "OPSTAGE_SWEEP_INTERVAL_S": "0.5"})
    beat.wait_for_log("Sending due task", 15)
    beat.kill9()
    already = len(beat.log())
    beat.start()
    beat.wait_for_log("Sending due task", 15, after=already)
