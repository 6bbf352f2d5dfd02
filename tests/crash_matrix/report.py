"""What ran, as a table to read and as data to keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.crash_matrix.cells import OPERATIONS, SIGNALS, WINDOWS, Place, Run, Selection, absent


def say(text: str) -> None:
    """One line (or many) for whoever started it."""
    print(text, flush=True)  # noqa: T201 - a command line prints


def write(folder: Path, runs: Sequence[Run], selection: Selection, seconds: float) -> str:
    """Write ``crash-matrix.md`` and ``crash-matrix.json``; returns the text of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*_head(runs, selection, seconds), *_tables(runs, selection), *_broken(runs)]) + "\n"
    (folder / "crash-matrix.md").write_text(text, encoding="utf-8")
    rows = [{**asdict(run), "place": str(run.place), "verdict": run.verdict} for run in runs]
    missing = [
        {"window": w, "signal": s, "place": str(p), "reason": absent(w, s, p, batch=selection.batch)}
        for p, s in selection.places()
        for w in selection.windows
        if absent(w, s, p, batch=selection.batch)
    ]
    data = {"seconds": round(seconds), "runs": rows, "absent": missing, "settings": selection.settings}
    (folder / "crash-matrix.json").write_text(
        json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    return text


def _head(runs: Sequence[Run], selection: Selection, seconds: float) -> list[str]:
    missed = sum(r.missed for r in runs)
    runs = [r for r in runs if not r.missed]
    cells = {(r.window, r.signal, r.place, r.operation) for r in runs}
    verdicts = Counter(
        r.verdict if r.problems or r.effects == 1 else "terminal failure, no effect" for r in runs
    )
    told = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
    set_here = " ".join(f"{k}={v}" for k, v in selection.settings.items())
    return [
        "# Crash matrix",
        "",
        f"{len(cells)} cells, {len(runs)} runs in {seconds:.0f} s: {told or 'nothing ran'}."
        + (f" {missed} more came past their window before the signal, and were repeated." if missed else "")
        + (f" Settings: {set_here}." if set_here else "")
        + (" The operations of a cell reached the worker as one batch." if selection.batch else ""),
        "",
        "Operations: " + "; ".join(f"{name} ({what})" for name, what in OPERATIONS.items()) + ".",
    ]


def _tables(runs: Sequence[Run], selection: Selection) -> list[str]:
    """A table for each place; a cell counts runs, effects and explicit failures of its operations."""
    lines: list[str] = []
    reasons: dict[str, int] = {}
    for place in dict.fromkeys(place for place, _ in selection.places()):
        lines += [
            "",
            f"## {place}",
            "",
            "| window | " + " | ".join(SIGNALS[s] for s in selection.signals) + " |",
        ]
        lines.append("|---" * (1 + len(selection.signals)) + "|")
        for window in selection.windows:
            cells = [_cell(runs, selection, window, signal, place, reasons) for signal in selection.signals]
            lines.append(f"| {window} {WINDOWS[window]} | " + " | ".join(cells) + " |")
    lines += [""] + [f"n/a {number}: {reason}." for reason, number in reasons.items()]
    return lines


def _cell(
    runs: Sequence[Run],
    selection: Selection,
    window: str,
    signal: str,
    place: Place,
    reasons: dict[str, int],
) -> str:
    reason = absent(window, signal, place, batch=selection.batch)
    if reason:
        return f"n/a {reasons.setdefault(reason, len(reasons) + 1)}"
    here = [r for r in runs if (r.window, r.signal, r.place) == (window, signal, place) and not r.missed]
    if not here:
        return "not run"
    broken = sum(bool(r.problems) for r in here)
    effects = sum(r.effects for r in here)
    failures = sum(r.code >= 400 for r in here)
    ends = f"{effects} effects" + (f" + {failures} failures" if failures else "")
    return f"{len(here)} runs, {ends}, " + (f"**{broken} BROKEN**" if broken else "sound")


def _broken(runs: Sequence[Run]) -> list[str]:
    broken = [run for run in runs if run.problems]
    if not broken:
        return []
    return ["", "## Broken", ""] + [
        f"- {r.place}, {r.signal}, {r.window}, {r.operation} ({r.op_id}): {'; '.join(r.problems[:4])}"
        for r in broken
    ]
