"""The Redis client of those who tell after a commit: bounded in time, never trying twice."""

from __future__ import annotations

import redis


def bounded_redis(url: str, timeout_s: float) -> redis.Redis:
    """A client whose connecting and each reply take ``timeout_s`` seconds at most. Connects when it is used."""
    return redis.Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=None,
        health_check_interval=30,
    )
