"""Wakes waiting streams and long polls: one Redis subscription and one look at the journal for the whole process.

A wake-up only says which operation moved: whoever wakes reads the journal, so a lost, late or doubled message can
neither hide nor repeat an event (I6). The journal is looked at in any case, more often while Redis is down, so that no
number of listeners makes the database busy with polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime

import redis.asyncio as aioredis
from redis.exceptions import RedisError
from sse_starlette.sse import AppStatus
from starlette.concurrency import run_in_threadpool

from staging.api.errors import outage
from staging.domain.identity import Actor, ActorKind, Tenant
from staging.messaging.redis_notifier import operation_channel, user_channel
from staging.services.feed import FeedService

log = logging.getLogger(__name__)
_RETRY_S = 1.0
_SLICE_S = 0.25


class Bell:
    """Rings when something moved; ``ops`` says which operations. ``take`` empties it."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._ops: set[str] = set()

    def ring(self, op_id: str) -> None:
        if op_id:
            self._ops.add(op_id)
        self._rung.set()

    def take(self) -> list[str]:
        self._rung.clear()
        taken, self._ops = self._ops, set()
        return sorted(taken)

    async def wait(self, timeout_s: float) -> None:
        """Return when it rings, or after ``timeout_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()


class Hub:
    """``poll_s``: seconds between looks at the journal; ``down_poll_s`` while Redis cannot be reached."""

    def __init__(
        self, redis_url: str, feed: FeedService, *, poll_s: float = 5.0, down_poll_s: float = 1.0
    ) -> None:
        self._redis_url, self._feed = redis_url, feed
        self._poll_s, self._down_poll_s = poll_s, down_poll_s
        self._waiting: dict[str, set[Bell]] = {}
        self._connected = False
        self._horizon: datetime | None = None
        self._rung: dict[str, int] = {}  # operation → seq, of the last look
        self._tasks: list[asyncio.Task[None]] = []
        self.closing = False

    async def __aenter__(self) -> Hub:
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._look())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def listeners(self) -> int:
        """How many wait right now."""
        return len({bell for bells in self._waiting.values() for bell in bells})

    @asynccontextmanager
    async def subscribed(self, channel: str) -> AsyncIterator[Bell]:
        """A bell for what happens on ``channel`` from now on; ``take`` before looking."""
        bell = Bell()
        self._waiting.setdefault(channel, set()).add(bell)
        try:
            yield bell
        finally:
            bells = self._waiting[channel]
            bells.discard(bell)
            if not bells:
                del self._waiting[channel]

    # --- waking ------------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            client = aioredis.Redis.from_url(
                self._redis_url, socket_connect_timeout=2, health_check_interval=10
            )
            try:
                async with client.pubsub() as subscription:
                    await subscription.psubscribe(user_channel("*", "*", "*"))
                    self._connected = True
                    self._horizon = None  # what happened while nobody listened
                    while True:
                        message = await subscription.get_message(ignore_subscribe_messages=True, timeout=10)
                        if message is not None:
                            self._hear(message["channel"].decode(), message["data"])
            except (RedisError, OSError) as error:
                if self._connected:
                    log.warning("Redis not reachable (%s); reading the journal instead", type(error).__name__)
            except Exception:
                log.exception("listening to Redis failed; reading the journal instead")
            finally:
                self._connected = False
                with contextlib.suppress(RedisError, OSError):
                    await client.aclose()
            await asyncio.sleep(_RETRY_S)

    def _hear(self, channel: str, data: bytes) -> None:
        try:
            op_id = str(json.loads(data)["opId"])
        except (ValueError, KeyError, TypeError):
            log.warning("a message that is not ours on %s", channel[:200])
            return
        # The tenant's channel is the user's without the user; ids may hold colons, so every prefix is tried.
        cuts = [i for i, sign in enumerate(channel) if sign == ":"]
        self._ring(op_id, [channel, operation_channel(op_id), *(channel[: i + 1] for i in cuts)])

    def _ring(self, op_id: str, channels: Iterable[str]) -> None:
        for channel in channels:
            for bell in self._waiting.get(channel, ()):
                bell.ring(op_id)

    async def _look(self) -> None:
        while True:
            await self._pause()
            if not self._waiting:
                self._horizon = None
                continue
            try:
                moved, self._horizon = await run_in_threadpool(self._feed.moved, self._horizon)
            except Exception as error:
                if outage(error) is None:
                    log.exception("looking at the journal failed; trying again")
                else:
                    log.warning("journal not readable (%s); trying again", type(error).__name__)
                continue
            before, self._rung = self._rung, {}
            for one in moved:
                self._rung[one.op_id] = max(one.seq, self._rung.get(one.op_id, 0))
            for one in moved:
                if one.seq > before.get(one.op_id, 0):
                    user = user_channel(one.tenant.brands_id, one.tenant.subsidiary_id, one.maker)
                    self._ring(one.op_id, [user, operation_channel(one.op_id), tenant_channel(one.tenant)])

    async def _pause(self) -> None:
        """Until the next look is due: at once where Redis has just come back; also notes that the server stops."""
        passed_s = 0.0
        connected = self._connected
        while passed_s < (self._poll_s if self._connected else self._down_poll_s):
            await asyncio.sleep(_SLICE_S)
            passed_s += _SLICE_S
            if AppStatus.should_exit and not self.closing:
                self.closing = True
                for bells in list(self._waiting.values()):
                    for bell in bells:
                        bell.ring("")
            if self._connected and not connected:
                return


def tenant_channel(tenant: Tenant) -> str:
    """Where an operator waits: what all user channels of the tenant start with."""
    return user_channel(tenant.brands_id, tenant.subsidiary_id, "")


def channel_of(actor: Actor) -> str:
    """Where whoever acts waits for what concerns them."""
    if actor.kind is ActorKind.OPERATOR:
        return tenant_channel(actor.tenant)
    return user_channel(actor.tenant.brands_id, actor.tenant.subsidiary_id, actor.user_id)
