"""Where a listener stands: nothing counts as seen that was not, and the cursor stays small."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from staging.domain.cursor import MAX_SEEN, OVERLAP, Cursor, load_cursor

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def cursor(*events: tuple[str, int, float]) -> Cursor:
    """A cursor at T0 that has seen ``(operation, seq, seconds after T0)``."""
    made = Cursor(T0)
    for op_id, seq, after_s in events:
        made.advance(op_id, seq, T0 + after_s * SECOND)
    return made


def resumed(made: Cursor) -> Cursor:
    found = load_cursor(made.dump())
    assert found is not None
    return found


def test_what_was_seen_is_known_after_resuming() -> None:
    made = resumed(cursor(("a", 1, 1), ("a", 2, 2), ("b", 300, 3)))
    assert [made.last_seen(op) for op in ("a", "b", "c")] == [2, 300, 0]
    assert made.horizon == T0


def test_an_older_seq_takes_nothing_back() -> None:
    assert cursor(("a", 5, 1), ("a", 4, 2)).last_seen("a") == 5


def test_the_horizon_follows_at_a_distance_and_what_is_behind_it_is_forgotten() -> None:
    made = cursor(("a", 1, 1), ("b", 1, 80), ("c", 1, 100))
    assert made.horizon == T0 + 100 * SECOND - OVERLAP
    assert [made.last_seen(op) for op in ("a", "b", "c")] == [0, 1, 1]
    assert len(made.seen) == 2


def test_a_late_event_does_not_move_the_horizon_back() -> None:
    made = cursor(("a", 1, 200), ("b", 1, 115))
    assert made.horizon == T0 + 200 * SECOND - OVERLAP
    assert made.last_seen("b") == 1


def test_a_resumed_cursor_keeps_what_it_has_seen_until_it_is_surely_behind() -> None:
    made = resumed(cursor(("a", 1, 80), ("b", 1, 100)))
    made.advance("c", 1, T0 + 150 * SECOND)
    assert made.last_seen("a") == 1  # its time is no longer known: it might be within the overlap
    made.advance("c", 2, T0 + 300 * SECOND)
    assert len(made.seen) == 1


def test_it_stays_small_enough_for_a_header_however_much_moves() -> None:
    made = Cursor(T0)
    for n in range(20 * MAX_SEEN):
        made.advance(f"operation-{n}", 3, T0 + n * timedelta(milliseconds=1))
        assert len(made.seen) <= MAX_SEEN
        unseen_after = min(at for _, at in made.seen.values())
        assert made.horizon <= unseen_after
    assert len(made.dump()) < 8000
    assert made.last_seen(f"operation-{20 * MAX_SEEN - 1}") == 3


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(1, 2**40), st.floats(0, 400, allow_nan=False)),
        max_size=60,
    )
)
def test_resuming_at_any_point_knows_what_was_known(events: list[tuple[str, int, float]]) -> None:
    made = cursor(*events)
    again = resumed(made)
    assert again.horizon == made.horizon
    assert {k: v[0] for k, v in again.seen.items()} == {k: v[0] for k, v in made.seen.items()}


@pytest.mark.parametrize(
    "text", ["", "x", "AQ", "Ag", "====", "é", "a" * 9, "AQAAAAAAAAAA//", "\0", "-_" * 6000]
)
def test_anything_else_is_no_cursor(text: str) -> None:
    assert load_cursor(text) is None


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    found = load_cursor(text)
    assert found is None or found.horizon.tzinfo is not None
