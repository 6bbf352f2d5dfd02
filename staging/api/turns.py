"""Handlers' work in threads, a few at a time: threads that compute at once take the interpreter from each other, and
that costs about as much as what they do."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from anyio.lowlevel import RunVar
from fastapi import Response
from starlette.concurrency import run_in_threadpool

from staging.contracts.error import Wire

T = TypeVar("T")
_AT_ONCE = 2
# Whoever takes longer waits for something (a lock, a server that is away) more than it computes: it keeps nobody out.
_TURN_S = 0.01


class Turns:
    """``at_once`` calls have their turn at a time. A turn ends with its call, or after ``turn_s`` seconds."""

    def __init__(self, at_once: int = _AT_ONCE, turn_s: float = _TURN_S) -> None:
        self._free, self._turn_s = asyncio.Semaphore(at_once), turn_s

    async def take(self, work: Callable[[], T]) -> T:
        """What ``work``, called in a thread, returns."""
        await self._free.acquire()
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._free.release()

        late = asyncio.get_running_loop().call_later(self._turn_s, end)
        try:
            return await run_in_threadpool(work)
        finally:
            late.cancel()
            end()


_turns: RunVar[Turns] = RunVar("turns")  # one per event loop


def in_turn(handler: Callable[..., Any], status_code: int | None) -> Callable[..., Coroutine[Any, Any, Any]]:
    """``handler`` as a coroutine function of the same signature that runs it, and writes its answer, in one thread."""

    def answer(given: dict[str, Any]) -> Any:
        said = handler(**given)
        if not isinstance(said, Wire):
            return said
        # Valid by its making: FastAPI would have it validated once more, in another thread.
        body = said.model_dump_json(by_alias=True)
        return Response(body, status_code or 200, media_type="application/json")

    @functools.wraps(handler)
    async def answered(**given: Any) -> Any:
        try:
            turns = _turns.get()
        except LookupError:
            turns = Turns()
            _turns.set(turns)
        return await turns.take(functools.partial(answer, given))

    return answered
