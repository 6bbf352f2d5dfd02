"""One API over the demo ERP for these tests. What differs between databases is tested beside what differs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.api import Door, open_door
from tests.support.private import EmbeddedRedis


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis) -> Iterator[Door]:
    with open_door("sqlite", session_redis.url, tmp_path_factory.mktemp("door")) as made:
        yield made
