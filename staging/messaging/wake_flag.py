"""One wake-up in flight is enough: a flag in Redis, raised with the message and lowered by the worker that got it.

A worker lowers it before it looks at the database, so a row committed before its confirm found the flag up is seen. A
flag whose message was lost ends by itself.
"""

from __future__ import annotations

import redis
from redis.client import Pipeline

from staging.messaging.bounded_redis import bounded_redis


class WakeFlag:
    """``life_s``: how long a flag stands at most (seconds); ``timeout_s`` bounds each call."""

    def __init__(self, url: str, queue: str, life_s: float, timeout_s: float) -> None:
        self._redis = bounded_redis(url, timeout_s)
        self._key, self._life_ms = f"ai:op:wake:{queue}", max(1, round(life_s * 1000))

    def raise_(self) -> bool:
        """False where a message is on its way already. True where none is, or nobody can tell."""
        pipeline = self._redis.pipeline(transaction=False)
        self.raise_in(pipeline)
        try:
            return self.raised(*pipeline.execute(raise_on_error=False))
        except redis.RedisError:
            return True

    def raise_in(self, pipeline: Pipeline) -> None:
        """Raise it with what else is on its way to the server; ``raised`` reads the answer."""
        pipeline.set(self._key, 1, nx=True, px=self._life_ms)

    @staticmethod
    def raised(answer: object) -> bool:
        return answer is not None  # an error: nobody can tell

    def lower(self) -> None:
        """The message has arrived, or could not be sent. A server that does not answer forgets it in time."""
        try:
            self._redis.delete(self._key)
        except redis.RedisError:
            return
