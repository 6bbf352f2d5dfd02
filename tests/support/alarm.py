"""An exception out of nowhere, at a chosen moment: how a pool's soft time limit and a shutdown reach running code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimit(Exception):
    """Stands for the pool's soft time limit."""


@contextmanager
def raising_when(moment: threading.Event, error: BaseException, patience_s: float = 30.0) -> Iterator[None]:
    """Raise ``error`` in the main thread as soon as ``moment`` is set; not once the block has ended."""

    def strike(_number: int, _frame: FrameType | None) -> None:
        raise error

    def watch() -> None:
        if moment.wait(patience_s) and not over.is_set():
            os.kill(os.getpid(), signal.SIGALRM)

    over = threading.Event()
    previous = signal.signal(signal.SIGALRM, strike)
    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        moment.set()  # where it never came the thread must not wait for it
        watching.join()
        signal.signal(signal.SIGALRM, previous)


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
