"""How many operations a worker claims at once follows from how long the last ones took."""

from __future__ import annotations

import pytest

from staging.domain.operation import Operation
from workers.batch import Batch, Pace


def an_operation() -> Operation:
    """A batch looks into none of them."""
    return Operation.__new__(Operation)


def ran(count: int) -> Batch:
    batch = Batch([an_operation() for _ in range(count)])
    while batch.take() is not None:
        pass
    return batch


@pytest.mark.parametrize(
    ("count", "seconds", "size"),
    [
        (10, 0.02, 50),  # 2 ms each: as many as may be
        (10, 1.0, 5),
        (1, 10.0, 1),  # never none
        (10, 0.0, 50),
    ],
)
def test_it_claims_what_the_last_pace_does_in_the_time_given(count: int, seconds: float, size: int) -> None:
    pace = Pace(most=50, within_s=0.5)
    pace.note(ran(count), seconds)
    assert pace.size == size


def test_a_batch_of_which_nothing_was_begun_says_nothing() -> None:
    pace = Pace(most=4, within_s=0.5)
    pace.note(Batch([an_operation()]), 9.0)
    assert pace.size == 4


def test_what_was_handed_back_or_put_back_does_not_count_as_run() -> None:
    batch = Batch([an_operation() for _ in range(10)])
    first = batch.take()
    assert first is not None
    group = batch.take_group(first, lambda _: True)
    batch.put_back(group)
    batch.take()
    assert len(batch.take_rest()) == 9
    pace = Pace(most=50, within_s=0.5)
    pace.note(batch, 1.0)
    assert pace.size == 1
