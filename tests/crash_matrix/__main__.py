"""``make crash-matrix``: the whole matrix or, by its options, a part of it. Exit 0 only if every run is sound."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.crash_matrix import report
from tests.crash_matrix.cells import MODES, OPERATIONS, SIGNALS, WINDOWS, Run, Selection
from tests.crash_matrix.sets import run_set
from tests.databases import KINDS
from tests.support.forked import die_with_parent


def selection_of(arguments: Sequence[str]) -> tuple[Selection, int, Path]:
    """What to run, in how many lanes, and where to write."""
    parser = argparse.ArgumentParser(prog="make crash-matrix ARGS=…", description=__doc__)
    lists = {"window": WINDOWS, "signal": SIGNALS, "database": KINDS, "mode": MODES, "operation": OPERATIONS}
    for name, known in lists.items():
        parser.add_argument(f"--{name}", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each cell")
    parser.add_argument(
        "--batch",
        action="store_true",
        help="the operations of a cell reach the worker as one batch and, in a shared database, share a commit",
    )
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="OPSTAGE_X=Y", help="settings of every process"
    )
    parser.add_argument("--lanes", type=int, default=2, help="sets of processes at a time")
    parser.add_argument("--out", type=Path, default=Path("artifacts"))
    given = parser.parse_args(arguments)
    chosen: dict[str, tuple[str, ...]] = {}
    for name, known in lists.items():
        chosen[name] = tuple(getattr(given, name).split(","))
        unknown = set(chosen[name]) - set(known)
        if unknown:
            parser.error(f"--{name}: {', '.join(sorted(unknown))} is none of {', '.join(known)}")
    settings = dict(each.partition("=")[::2] for each in given.set)
    if not all(name.startswith("OPSTAGE_") for name in settings):
        parser.error("--set takes OPSTAGE_NAME=value")
    made = Selection(
        windows=chosen["window"],
        signals=chosen["signal"],
        kinds=chosen["database"],
        modes=chosen["mode"],
        operations=chosen["operation"],
        repeat=given.repeat,
        batch=given.batch,
        settings=settings,
    )
    return made, given.lanes, given.out


def main(arguments: Sequence[str]) -> int:
    selection, lanes, out = selection_of(arguments)
    begun = time.monotonic()
    runs: list[Run] = []
    failed: list[str] = []
    lane = {"mp_context": get_context("spawn"), "max_tasks_per_child": 1, "initializer": die_with_parent}
    with ProcessPoolExecutor(lanes, **lane) as pool:  # type: ignore[call-overload]
        sets = {pool.submit(run_set, *which, selection, report.say): which for which in selection.places()}
        for done in as_completed(sets):
            place, signal = sets[done]
            error = done.exception()
            if error is not None:
                failed.append(f"{place}, {signal}: {type(error).__name__}: {error}")
                report.say(failed[-1])
                continue
            runs += done.result()
            broken = sum(bool(run.problems) for run in done.result())
            took_s = time.monotonic() - begun
            report.write(out, runs, selection, took_s)  # whatever becomes of the rest
            report.say(
                f"{took_s:5.0f} s  {place}, {SIGNALS[signal]}: {len(done.result())} runs, {broken} broken"
            )
    report.say(report.write(out, runs, selection, time.monotonic() - begun))
    for line in failed:
        report.say(f"NOT RUN TO ITS END: {line}")
    return 0 if runs and not failed and not any(run.problems for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
