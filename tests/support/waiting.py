"""Waiting for something to become true, with a deadline instead of a hopeful sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(predicate: Callable[[], T], timeout_s: float, message: str, *, poll_s: float = 0.02) -> T:
    """Return the first truthy value of ``predicate``; AssertionError with ``message`` after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {message} (last value: {value!r})")
        time.sleep(poll_s)
