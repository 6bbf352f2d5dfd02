"""Preparations between prepare and confirm, in Redis with a TTL. Losing one costs a new prepare, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from staging.contracts.error import ErrorCode
from staging.domain.errors import Transient
from staging.domain.intake import dump_json, load_json

_PREFIX = "ai:prep:"


class RedisPreparationStore:
    """``redis_url`` is the pub/sub server; timeouts in seconds. Raises ``unavailable`` where it cannot be reached."""

    def __init__(self, redis_url: str, timeout_s: float) -> None:
        self._redis = redis.Redis.from_url(
            redis_url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s
        )

    def key(self, preparation_id: str) -> str:
        return _PREFIX + preparation_id

    def put(self, preparation_id: str, snapshot: Mapping[str, Any], ttl_s: int) -> None:
        try:
            self._redis.set(self.key(preparation_id), dump_json(dict(snapshot)), ex=ttl_s)
        except redis.RedisError as error:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "Redis"}) from error

    def get(self, preparation_id: str) -> dict[str, Any] | None:
        try:
            stored = self._redis.get(self.key(preparation_id))
        except redis.RedisError as error:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "Redis"}) from error
        if stored is None:
            return None
        value: dict[str, Any] = load_json(stored)
        return value

    def drop(self, preparation_id: str) -> None:
        try:
            self._redis.delete(self.key(preparation_id))
        except redis.RedisError as error:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "Redis"}) from error

    def close(self) -> None:
        self._redis.close()
