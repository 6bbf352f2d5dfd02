"""Five hundred streams on one API process: what they cost, and how soon everybody hears."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from staging.domain.identity import ActorKind
from tests.support.api import OPERATOR, PERSON, Door, open_door
from tests.support.demo_requests import new_customer
from tests.support.private import EmbeddedRedis

log = logging.getLogger(__name__)
STREAMS = 500
USERS = ("u-lin", "u-zhao", "u-chen", "u-wang", "u-qian")
SOON_S = 3.0
MEMORY_EACH = 300_000  # bytes


@pytest.fixture
def own_door(private_redis: EmbeddedRedis, tmp_path: Path) -> Iterator[Door]:
    settings = {"stream_heartbeat_s": "2", "streams_per_credential": str(STREAMS)}
    with open_door("postgresql", private_redis.url, tmp_path, **settings) as made:
        yield made


class Stream:
    """One connection, read on the event loop; ``heard``: operation and seq → when."""

    def __init__(self, door: Door, user: str, kind: ActorKind) -> None:
        self.user, self.kind = user, kind
        self._port, self._token = door.api.port, door.as_(user, kind).token
        self.heard: dict[tuple[str, int], float] = {}
        self.twice = 0
        self.heartbeats = 0
        self.opened = asyncio.Event()

    async def run(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        writer.write(head.encode())
        try:
            async for line in reader:
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    key = (event["opId"], event["seq"])
                    self.twice += key in self.heard
                    self.heard[key] = time.monotonic()
                elif line.startswith(b": "):
                    self.heartbeats += b"ping" in line
                    self.opened.set()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def all_hear(streams: list[Stream], op_id: str, seq: int, timeout_s: float) -> float:
    """Seconds from now until the last of ``streams`` has heard the event."""
    started = time.monotonic()
    while not all((op_id, seq) in stream.heard for stream in streams):
        missing = sum((op_id, seq) not in stream.heard for stream in streams)
        assert time.monotonic() - started < timeout_s, f"{missing} of {len(streams)} have not heard"
        await asyncio.sleep(0.01)
    return time.monotonic() - started


def test_five_hundred_streams_on_one_process(own_door: Door, private_redis: EmbeddedRedis) -> None:
    asyncio.run(_run(own_door, private_redis))


async def _run(door: Door, redis: EmbeddedRedis) -> None:
    process = psutil.Process(door.api.pid)
    measured: dict[str, object] = {}
    await asyncio.to_thread(door.stage, "u-lin", **new_customer())  # warm
    before = process.memory_info().rss
    streams = [Stream(door, USERS[n % len(USERS)], PERSON) for n in range(STREAMS - 20)]
    streams += [Stream(door, "ops", OPERATOR) for _ in range(20)]
    started = time.monotonic()
    tasks = [asyncio.create_task(stream.run()) for stream in streams]
    async with asyncio.timeout(60):
        await asyncio.gather(*(stream.opened.wait() for stream in streams))
    measured["opening_s"] = round(time.monotonic() - started, 2)
    each = (process.memory_info().rss - before) / STREAMS
    measured["bytes_each"] = int(each)
    assert each < MEMORY_EACH
    assert process.num_threads() < 80

    cpu = process.cpu_times()
    quiet_from = time.monotonic()
    await asyncio.sleep(6)  # heartbeats only: what they cost while nothing happens
    used = process.cpu_times()
    share = (used.user + used.system - cpu.user - cpu.system) / (time.monotonic() - quiet_from)
    measured["idle_cpu"] = round(share, 3)
    assert share < 0.5
    assert all(stream.heartbeats >= 2 for stream in streams)

    concerned = [s for s in streams if s.user == "u-lin" or s.kind is OPERATOR]
    others = [s for s in streams if s not in concerned]
    delays, op = [], {"id": ""}
    for _ in range(5):
        op = await asyncio.to_thread(door.stage, "u-lin", **new_customer())
        delays.append(await all_hear(concerned, op["id"], 1, 10))
    measured["last_hears_after_s"] = [round(delay, 3) for delay in delays]
    assert sorted(delays)[2] < SOON_S

    redis.kill9()  # reading the journal must not become a query per stream
    operation = await asyncio.to_thread(_moved_without_redis, door, op["id"])
    without = await all_hear(concerned, op["id"], operation, 15)
    measured["without_redis_s"] = round(without, 3)
    assert all(stream.twice == 0 for stream in streams)
    assert all(not stream.heard for stream in others)
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert "Traceback" not in door.api.log()
    log.info("%s", measured)  # pytest --log-cli-level=INFO


def _moved_without_redis(door: Door, op_id: str) -> int:
    """Cancel it; the seq it then has."""
    return int(door.as_("u-lin").post(f"/v1/operations/{op_id}/cancel", {"reason": "test"})["seq"])
