"""One API over the demo ERP for all of these tests, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.api import Door, open_door
from tests.support.private import EmbeddedRedis


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis
) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("door")
    with open_door(request.param, session_redis.url, folder) as made:
        yield made
