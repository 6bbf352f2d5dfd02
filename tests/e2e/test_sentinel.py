"""Redis behind Sentinel as the broker: its master dies, the replica is promoted, and whatever was confirmed runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.support.broker_death import run_and_survive
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedRedis, open_folder
from tests.support.processes import BeatProcess
from tests.support.sentinel import MASTER, PrivateSentinel
from tests.support.waiting import wait_until
from tests.support.world import DEPLOYED
from tests.support.world_fixtures import MakeWorld


@dataclass(frozen=True, slots=True)
class Watched:
    master: EmbeddedRedis
    sentinel: PrivateSentinel


@pytest.fixture
def watched() -> Iterator[Watched]:
    with open_folder() as folder, EmbeddedRedis(folder / "one") as master:
        password = master.url.partition("default:")[2].partition("@")[0]
        follow = {
            "replicaof": f"127.0.0.1 {master.port}",
            "masterauth": password,
            "masteruser": "default",
        }
        with (
            EmbeddedRedis(folder / "two", options=follow, password=password),
            PrivateSentinel(folder / "sentinel", master) as sentinel,
        ):
            wait_until(sentinel.knows_a_replica, 30, "the Sentinel has found the replica")
            yield Watched(master, sentinel)


def test_operations_run_over_sentinel_and_survive_the_death_of_its_master(
    watched: Watched,
    open_world: MakeWorld,
    start_mortal_worker: StartWorker,
    start_beat: Callable[[Mapping[str, str]], BeatProcess],
) -> None:
    broker = {"broker_url": watched.sentinel.url, "broker_sentinel_master": MASTER}
    world = open_world("postgresql", shared=True, **broker, **DEPLOYED)
    before = watched.master.port

    def promoted() -> None:
        wait_until(lambda: watched.sentinel.master_port() != before, 60, "the replica is master")

    run_and_survive(world, start_mortal_worker, start_beat, die=watched.master.kill9, come_back=promoted)
