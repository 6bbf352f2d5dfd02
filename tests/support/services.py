"""Servers a test needs but does not start: use them, skip with a line that helps, or fail where they are required."""

from __future__ import annotations

import os
from functools import cache
from typing import NoReturn

import pytest
import redis

REQUIRE = "OPSTAGE_REQUIRE_SERVICES"
REDIS_VARIABLE = "OPSTAGE_TEST_REDIS_URL"
_REDIS_DEFAULT = "redis://127.0.0.1:6379/15"


def missing(what: str, remedy: str, problem: str = "") -> NoReturn:
    """Skip the calling test because ``what`` is missing; fail it instead with OPSTAGE_REQUIRE_SERVICES=1 (CI)."""
    line = f"{what}; to run this test: {remedy}" + (f" ({problem})" if problem else "")
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(line)
    pytest.skip(line)


def shared_redis() -> str:
    """URL of the machine's Redis, for reading what it is; tests that write use ``redis_url`` or ``private_redis``."""
    url = os.environ.get(REDIS_VARIABLE, _REDIS_DEFAULT)
    problem = _redis_problem(url)
    if problem:
        missing("Redis is not reachable", f"start it, or set {REDIS_VARIABLE}", problem)
    return url


@cache
def _redis_problem(url: str) -> str:
    client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2)
    try:
        client.ping()
    except redis.exceptions.RedisError as error:
        return str(error)
    finally:
        client.close()
    return ""
