"""Backoff grows, is spread, has a ceiling, and can be repeated."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from staging.domain.retry import attempts_left, backoff_s

seconds = st.floats(min_value=0.001, max_value=3600)


@given(st.integers(-5, 10**9), seconds, seconds, st.integers())
def test_the_wait_lies_between_half_the_base_and_the_cap(
    attempt: int, base: float, cap: float, seed: int
) -> None:
    wait = backoff_s(attempt, base_s=base, cap_s=cap, random=Random(seed))
    assert min(base / 2, cap) <= wait <= cap


@given(st.integers(1, 100), st.integers())
def test_the_same_source_gives_the_same_wait(attempt: int, seed: int) -> None:
    first, again = (backoff_s(attempt, base_s=1, cap_s=60, random=Random(seed)) for _ in range(2))
    assert first == again


class Highest(Random):
    """Always draws the upper end."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Lowest(Random):
    """Always draws the lower end."""

    def uniform(self, a: float, b: float) -> float:
        return a


def test_the_ceiling_doubles_with_each_attempt_up_to_the_cap() -> None:
    ceilings = [backoff_s(n, base_s=1, cap_s=60, random=Highest()) for n in range(1, 9)]
    assert ceilings == [1, 2, 4, 8, 16, 32, 60, 60]
    assert {backoff_s(n, base_s=1, cap_s=60, random=Lowest()) for n in range(1, 9)} == {0.5}


def test_without_a_source_two_waits_differ() -> None:
    assert len({backoff_s(8, base_s=1, cap_s=60) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("attempt", "limit", "left"), [(0, 5, 5), (1, 5, 4), (5, 5, 0), (6, 5, 0), (3, 0, 0), (-1, 5, 6)]
)
def test_attempts_left(attempt: int, limit: int, left: int) -> None:
    assert attempts_left(attempt, limit) == left
