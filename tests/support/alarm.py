"""An exception out of nowhere, at a chosen moment: how a pool's soft time limit and a shutdown reach running code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimit(Exception):
    """Stands for the pool's soft time limit."""


@contextmanager
def raising_after(seconds: float, error: BaseException) -> Iterator[None]:
    """Raise ``error`` in the main thread after ``seconds``, wherever it is then; not once the block has ended."""

    def strike(_number: int, _frame: FrameType | None) -> None:
        raise error

    previous = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
