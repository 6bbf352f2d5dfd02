"""Redis pub/sub after commit (CONTRACT section 3). Fire and forget, in bounded time."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import redis

from staging.domain.operation import Told
from staging.messaging.bounded_redis import bounded_redis

log = logging.getLogger(__name__)


def user_channel(brands_id: str, subsidiary_id: str, user_id: str) -> str:
    return f"ai:op:user:{brands_id}:{subsidiary_id}:{user_id}"


def operation_channel(op_id: str) -> str:
    return f"ai:op:id:{op_id}"


class RedisNotifier:
    """Publishes all events of a commit in one pipeline; ``timeout_s`` bounds connecting and each reply."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._redis = bounded_redis(url, timeout_s)

    def publish(self, events: Iterable[Told]) -> bool:
        """True if handed to the server; False, logged, if it could not be reached: listeners then ask or read
        events."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.ping()  # so that publishing nothing still says whether the server is there
        for told in events:
            message = told.event.model_dump_json(by_alias=True)
            tenant = told.tenant
            pipeline.publish(user_channel(tenant.brands_id, tenant.subsidiary_id, told.user_id), message)
            pipeline.publish(operation_channel(told.event.op_id), message)
        try:
            pipeline.execute()
        except redis.RedisError as error:
            log.warning(
                "events not published (%s); listeners read them from the journal", type(error).__name__
            )
            return False
        return True

    def close(self) -> None:
        self._redis.close()
