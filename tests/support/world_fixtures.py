"""Fixtures around ``World``: the queue engine on every database, shared and separate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.databases import KINDS
from tests.support.private import EmbeddedRedis
from tests.support.world import Databases, World, databases

PLACES = [(kind, shared) for kind in KINDS for shared in (True, False)]
MakeWorld = Callable[..., World]


def named(place: tuple[str, bool]) -> str:
    return f"{place[0]}-{'shared' if place[1] else 'separate'}"


@pytest.fixture(scope="module", params=PLACES, ids=[named(place) for place in PLACES])
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Databases for a module's tests, on three engines, shared and separate; each test finds them empty."""
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


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """An empty World with the usual short limits."""
    made = make_world()
    made.wipe()
    return made


@pytest.fixture
def flag(tmp_path: Path) -> Callable[[str], str]:
    """``flag("name")`` → absolute path of a file that does not exist yet."""
    return lambda name: str(tmp_path / name)
