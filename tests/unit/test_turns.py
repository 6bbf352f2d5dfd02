"""Handlers' threads: a few compute at a time, and who waits for something keeps nobody out."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from typing import Any

import pytest
from fastapi import Response

from staging.api.turns import Turns, in_turn
from staging.contracts.error import Wire

_LONG_S = 30.0


class Said(Wire):
    to_whom: str


class Busy:
    """Work that notes how many do it at once."""

    def __init__(self) -> None:
        self._lock, self._running, self.most = threading.Lock(), 0, 0

    def __call__(self) -> None:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        time.sleep(0.002)
        with self._lock:
            self._running -= 1


async def most_at_once(turns: Turns) -> int:
    busy = Busy()
    async with asyncio.timeout(_LONG_S / 2):
        await asyncio.gather(*(turns.take(busy) for _ in range(20)))
    return busy.most


def test_no_more_than_so_many_compute_at_once() -> None:
    async def all_of_them() -> int:
        return await most_at_once(Turns(at_once=2, turn_s=_LONG_S))

    assert asyncio.run(all_of_them()) == 2


def test_calls_that_wait_for_something_keep_nobody_out() -> None:
    answered = threading.Event()

    async def beside_long_ones() -> list[bool]:
        turns = Turns(at_once=2, turn_s=0.01)
        long = [asyncio.create_task(turns.take(lambda: answered.wait(_LONG_S))) for _ in range(6)]
        async with asyncio.timeout(_LONG_S / 2):
            await turns.take(lambda: None)
        answered.set()
        return await asyncio.gather(*long)

    assert asyncio.run(beside_long_ones()) == [True] * 6


def test_a_turn_that_ended_by_time_or_by_an_error_is_given_back_once() -> None:
    async def slow_then_failing_then_many() -> int:
        turns = Turns(at_once=1, turn_s=0.3)
        await turns.take(lambda: time.sleep(0.5))
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await turns.take(lambda: 1 // 0)
        return await most_at_once(turns)

    assert asyncio.run(slow_then_failing_then_many()) == 1


def test_a_handler_keeps_its_signature_and_its_answer_is_written_in_its_thread() -> None:
    threads: list[int] = []

    def greet(to_whom: str) -> Said:
        threads.append(threading.get_ident())
        return Said(to_whom=to_whom)

    def plainly(to_whom: str) -> dict[str, str]:
        return {"to": to_whom}

    async def ask() -> tuple[Any, Any]:
        return await in_turn(greet, 202)(to_whom="林"), await in_turn(plainly, None)(to_whom="林")

    answer, as_it_is = asyncio.run(ask())
    assert inspect.signature(in_turn(greet, 202)) == inspect.signature(greet)
    assert isinstance(answer, Response)
    assert (answer.status_code, answer.body) == (202, '{"toWhom":"林"}'.encode())
    assert as_it_is == {"to": "林"}
    assert threads != [threading.get_ident()]
