"""Fixtures around ``World``: the queue engine on every database, shared and separate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.databases import KINDS
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedRedis
from tests.support.processes import WorkerProcess
from tests.support.world import Databases, World, databases

PLACES = [(kind, shared) for kind in KINDS for shared in (True, False)]
MakeWorld = Callable[..., World]


def _named(place: tuple[str, bool]) -> str:
    return f"{place[0]}-{'shared' if place[1] else 'separate'}"


def only(keep: Callable[[str, bool], bool]) -> pytest.MarkDecorator:
    """``pytestmark = only(lambda kind, shared: …)``: a module whose tests concern some of the places alone."""
    kept = [place for place in PLACES if keep(*place)]
    return pytest.mark.parametrize("where", kept, ids=map(_named, kept), indirect=True, scope="module")


@pytest.fixture(scope="module", params=PLACES, ids=[_named(place) for place in PLACES])
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Databases for a module's tests, on three engines, shared and separate."""
    kind, shared = request.param
    with databases(kind, shared, tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def make_world(where: Databases, session_redis: EmbeddedRedis) -> Iterator[MakeWorld]:
    """``make_world(lock_timeout_s="2", …)`` → a World on the test's databases with these settings."""
    made: list[World] = []

    def make(**settings: str) -> World:
        made.append(World(where, session_redis.url, **settings))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture(scope="module")
def standing_world(where: Databases, session_redis: EmbeddedRedis) -> Iterator[World]:
    """Ask for ``world`` instead."""
    made = World(where, session_redis.url)
    yield made
    made.close()


@pytest.fixture
def world(standing_world: World) -> World:
    """An empty World with the usual short limits."""
    standing_world.wipe()
    return standing_world


@pytest.fixture
def flag(tmp_path: Path) -> Callable[[str], str]:
    """``flag("name")`` → absolute path of a file that does not exist yet."""
    return lambda name: str(tmp_path / name)


@pytest.fixture
def open_world(tmp_path: Path, private_redis: EmbeddedRedis) -> Iterator[MakeWorld]:
    """``open_world("postgresql", shared=True, …settings)`` → a World with databases and a Redis of this test's own.

    Its ``env`` starts workers and beats on the same.
    """
    with ExitStack() as stack:

        def make(kind: str, *, shared: bool, **settings: str) -> World:
            folder = tmp_path / f"{kind}-{shared}"
            folder.mkdir()
            where = stack.enter_context(databases(kind, shared, folder))
            world = World(where, private_redis.url, data_dir=str(folder), **settings)
            stack.callback(world.close)
            return world

        yield make


@pytest.fixture
def start_mortal_worker(start_worker: StartWorker) -> Iterator[StartWorker]:
    """``start_worker`` for tests that are done with their workers once they have seen what they wanted: SIGKILL at the
    end, instead of seconds for an orderly stop."""
    started: list[WorkerProcess] = []

    def start(env: Mapping[str, str], *, name: str = "", concurrency: int = 1) -> WorkerProcess:
        started.append(start_worker(env, name=name, concurrency=concurrency))
        return started[-1]

    yield start
    for worker in started:
        if worker.alive():
            worker.kill_all()
