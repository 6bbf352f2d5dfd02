"""Redis pub/sub after commit (CONTRACT section 3). Fire and forget, in bounded time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import redis

from staging.domain.operation import Told
from staging.domain.ports import Published
from staging.messaging.bounded_redis import bounded_redis
from staging.messaging.wake_flag import WakeFlag

log = logging.getLogger(__name__)


def user_channel(brands_id: str, subsidiary_id: str, user_id: str) -> str:
    return f"ai:op:user:{brands_id}:{subsidiary_id}:{user_id}"


def operation_channel(op_id: str) -> str:
    return f"ai:op:id:{op_id}"


class RedisNotifier:
    """Does all that Redis has to do after a commit in one pipeline; ``timeout_s`` bounds connecting and each reply."""

    def __init__(self, url: str, timeout_s: float, flag: WakeFlag) -> None:
        self._redis, self._flag = bounded_redis(url, timeout_s), flag

    def publish(
        self, events: Iterable[Told], *, raise_flag: bool = False, drop: Sequence[str] = ()
    ) -> Published:
        """Not reached, and logged, if the server could not be: listeners then ask or read events."""
        pipeline = self._redis.pipeline(transaction=False)
        if raise_flag:
            self._flag.raise_in(pipeline)
        else:
            pipeline.ping()  # so that publishing nothing still says whether the server is there
        for told in events:
            message = told.event.model_dump_json(by_alias=True)
            tenant = told.tenant
            pipeline.publish(user_channel(tenant.brands_id, tenant.subsidiary_id, told.user_id), message)
            pipeline.publish(operation_channel(told.event.op_id), message)
        if drop:
            pipeline.delete(*drop)
        try:
            answers = pipeline.execute(raise_on_error=False)
        except redis.RedisError as error:
            return _unpublished(error)
        raised = self._flag.raised(answers.pop(0)) if raise_flag else True
        refused = next((answer for answer in answers if isinstance(answer, redis.RedisError)), None)
        return _unpublished(refused) if refused else Published(True, raised)

    def close(self) -> None:
        self._redis.close()


def _unpublished(error: redis.RedisError) -> Published:
    log.warning("events not published (%s); listeners read them from the journal", type(error).__name__)
    return Published(False)
