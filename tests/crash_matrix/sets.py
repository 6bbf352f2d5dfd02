"""One set of processes through all its windows, and the verdict on every operation it was given."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from tests.crash_matrix.cells import Place, Run, Selection, absent
from tests.crash_matrix.rounds import Round
from tests.crash_matrix.stand import Stand, open_stand
from tests.crash_matrix.world import LONG_TASKS

log = logging.getLogger(__name__)
_STOP_S = 60.0
_TRIES = 3  # for an operation that came past its window before the signal


def run_set(
    place: Place, signal: str, selection: Selection, tell: Callable[[str], None] = log.info
) -> list[Run]:
    """All selected windows at one place under one signal, one after the other; every run has its verdict."""
    begun = time.monotonic()

    def say(what: str) -> None:
        tell(f"{time.monotonic() - begun:6.1f} s  {place}, {signal}, {what}")

    renewal = tuple(w for w in selection.windows if w == "W11")
    long = replace(selection, windows=renewal, settings=selection.settings | LONG_TASKS)
    short = replace(selection, windows=tuple(w for w in selection.windows if w not in renewal))
    return [*_run_stand(place, signal, short, say), *_run_stand(place, signal, long, say)]


def _run_stand(place: Place, signal: str, selection: Selection, say: Callable[[str], None]) -> list[Run]:
    runs: list[Run] = []
    if all(absent(w, signal, place, batch=selection.batch) for w in selection.windows):
        return runs
    with open_stand(place, signal, selection.settings, batch=selection.batch) as stand:
        say("ready")
        for played in _rounds(place, signal, selection, stand):
            runs += _until_struck(stand, played, say)
        stand.come_to_rest(_STOP_S)
        judge(stand, runs)
        say("judged")
    return runs


def _until_struck(stand: Stand, played: Round, say: Callable[[str], None]) -> list[Run]:
    """Play the round, and again for operations that came past their window; all runs of it."""
    runs: list[Run] = []
    for tries_left in reversed(range(_TRIES)):
        _play(stand, played)
        runs += played.runs
        missed = [r for r in played.runs if not r.fired]
        say(f"{played.runs[0].window}: {len(played.runs) - len(missed)} of {len(played.runs)} struck")
        if not missed or not tries_left:
            break
        for run in missed:
            run.missed = True
        again = [Run(run.window, run.signal, run.place, run.operation) for run in missed]
        played = Round(stand, again, played.batch)
    return runs


def _play(stand: Stand, played: Round) -> None:
    try:
        played.play()
    except AssertionError as error:
        for run in played.runs:
            run.problems.append(str(error).splitlines()[0])
    crooked = stand.world.crooked()
    for run in played.runs:
        run.problems += crooked


def _rounds(place: Place, signal: str, selection: Selection, stand: Stand) -> Iterator[Round]:
    for window, _ in product(selection.windows, range(selection.repeat)):
        if not absent(window, signal, place, batch=selection.batch):
            runs = [Run(window, signal, place, operation) for operation in selection.operations]
            yield Round(stand, runs, selection.batch)


def judge(stand: Stand, runs: list[Run]) -> None:
    """Give every run its verdict, by the oracle; a problem that names none of them is everybody's."""
    world = stand.world
    verdict = world.oracle.verdict()
    codes = world.codes([r.op_id for r in runs])
    unclaimed = set(verdict.problems)
    for run in runs:
        run.code = codes.get(run.op_id, 0)
        run.effects = world.oracle.effects(run.op_id)
        mine = {p for p in verdict.problems if run.op_id and run.op_id in p}
        unclaimed -= mine
        run.problems += sorted(mine)
        if not run.fired and not run.missed:
            run.problems.append("the failpoint has not fired")
        if run.effects + (run.code >= 400) != 1:
            run.problems.append(f"code {run.code} and {run.effects} effects")
    for problem in sorted(unclaimed):
        for run in runs:
            run.problems.append(problem)
