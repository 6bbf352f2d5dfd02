"""Processes lost at every window of an operation's life: whatever was accepted has one effect or one explicit end.

A part of the crash matrix, each window and each signal at least once; ``make crash-matrix`` runs all of it.
"""

from __future__ import annotations

import pytest

from tests.crash_matrix.cells import OPERATIONS, WINDOWS, Place, Run, Selection, absent
from tests.crash_matrix.sets import run_set

PART = [
    (Place("postgresql", "separate"), "kill", "W1 W2 W3 W4 W5 W6 W7 W8 W9 W10 W12"),
    (Place("mariadb", "separate"), "kill-main", "W3 W6 W8 W9"),
    (Place("sqlite", "shared"), "quit", "W0 W4 W7 W14"),
    (Place("postgresql", "shared"), "stop", "W4 W6 W11 W13"),
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("place", "signal", "windows"), PART, ids=[f"{p}-{s}" for p, s, _ in PART])
def test_each_operation_has_one_effect_or_one_explicit_end_whatever_dies_where(
    place: Place, signal: str, windows: str
) -> None:
    chosen = tuple(windows.split())
    runs = _sound_runs(place, signal, Selection(windows=chosen))
    assert sorted((r.window, r.operation) for r in runs) == sorted((w, o) for w in chosen for o in OPERATIONS)
    assert all(r.fired for r in runs)


@pytest.mark.timeout(400)
def test_operations_that_share_a_commit_are_lost_together_and_have_one_effect_each() -> None:
    windows = ("W5", "W6", "W7", "W8")
    runs = _sound_runs(Place("postgresql", "shared"), "kill", Selection(windows=windows, batch=True))
    assert sorted((r.window, r.operation) for r in runs) == sorted(
        (w, o) for w in windows for o in OPERATIONS
    )
    together = {window: {r.fired for r in runs if r.window == window} for window in windows}
    assert all(len(struck) == 1 for struck in together.values()), "one child had all four of them"
    assert all(r.fired for r in runs)


def _sound_runs(place: Place, signal: str, selection: Selection) -> list[Run]:
    """The runs that were struck at their window, after a look that none of all is broken."""
    all_runs = run_set(place, signal, selection)
    broken = [f"{r.window} {r.operation}: {'; '.join(r.problems)}" for r in all_runs if r.problems]
    assert not broken, "\n".join(broken)
    return [r for r in all_runs if not r.missed]


def test_every_window_is_in_the_part_or_named_as_absent() -> None:
    assert {window for _, _, windows in PART for window in windows.split()} == set(WINDOWS)
    assert all(
        not absent(window, signal, place) for place, signal, windows in PART for window in windows.split()
    )
