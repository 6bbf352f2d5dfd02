"""One listener per API process wakes all waiting streams and long polls. A wake-up carries nothing: whoever
wakes reads the journal, so a lost or doubled message can neither hide nor repeat an event (I6), and Redis
being down only means slower.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis.asyncio as aioredis
from redis.exceptions import RedisError

from staging.domain.identity import Tenant
from staging.messaging.redis_notifier import operation_channel, user_channel

log = logging.getLogger(__name__)
_PATTERN = "ai:op:*"
_RETRY_S = 1.0


class Hub:
    """``poll_s``: how often everybody looks at the table anyway; while Redis is down, every ``down_poll_s``."""

    def __init__(self, redis_url: str, *, poll_s: float = 5.0, down_poll_s: float = 1.0) -> None:
        self._redis_url, self._poll_s, self._down_poll_s = redis_url, poll_s, down_poll_s
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._connected = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Hub:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def poll_s(self) -> float:
        """How long a waiter should wait at most before it looks by itself."""
        return self._poll_s if self._connected else self._down_poll_s

    @asynccontextmanager
    async def subscribed(self, *channels: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever something happens on one of ``channels``; clear it before looking."""
        bell = asyncio.Event()
        for channel in channels:
            self._waiting.setdefault(channel, set()).add(bell)
        try:
            yield bell
        finally:
            for channel in channels:
                bells = self._waiting.get(channel, set())
                bells.discard(bell)
                if not bells:
                    self._waiting.pop(channel, None)

    async def _listen(self) -> None:
        while True:
            client = aioredis.Redis.from_url(
                self._redis_url, socket_connect_timeout=2, health_check_interval=10
            )
            try:
                async with client.pubsub() as subscription:
                    await subscription.psubscribe(_PATTERN)
                    self._connected = True
                    self._ring_all()  # what happened while nobody listened
                    while True:
                        message = await subscription.get_message(ignore_subscribe_messages=True, timeout=10)
                        if message is not None:
                            self._ring(message["channel"].decode())
            except (RedisError, OSError) as error:
                if self._connected:
                    log.warning("Redis not reachable (%s); reading the table instead", type(error).__name__)
                self._connected = False
            finally:
                await client.aclose()
            await asyncio.sleep(_RETRY_S)

    def _ring(self, channel: str) -> None:
        for bell in self._waiting.get(channel, ()):
            bell.set()

    def _ring_all(self) -> None:
        for channel in list(self._waiting):
            self._ring(channel)


def channels_of(tenant: Tenant, user_id: str, op_id: str = "") -> tuple[str, ...]:
    """Channels whose messages concern a waiter: the operation's, or all of the user's."""
    return (
        operation_channel(op_id) if op_id else user_channel(tenant.brands_id, tenant.subsidiary_id, user_id),
    )
