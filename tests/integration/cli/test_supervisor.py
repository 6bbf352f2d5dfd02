"""The supervisor's promise: its parts run together, stop together, and none outlives it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.processes import LoggedProcess, gone
from tests.support.waiting import wait_until

_SCRIPT = """
import os, sys
from pathlib import Path
from staging.cli.supervisor import Part, Supervisor
parts = [Part(name, [sys.executable, "-uc", code]) for name, code in {parts!r}.items()]
sys.exit(Supervisor(parts, os.environ, Path.cwd(), grace_s={grace_s}).run())
"""
_OBEDIENT = "import time; print('up'); time.sleep(600)"
_STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
_BRIEF = "import time; print('up'); time.sleep(0.5); raise SystemExit(7)"


class Started(LoggedProcess):
    """A supervisor over the given parts, all of them up."""

    def __init__(self, folder: Path, parts: dict[str, str], grace_s: float = 20) -> None:
        script = _SCRIPT.format(parts=parts, grace_s=grace_s)
        super().__init__([sys.executable, "-c", script], {"OPSTAGE_LOCALE": "en"}, folder, "supervisor")
        self.start(wait=False)
        width = max(map(len, parts))
        for name in parts:
            self.wait_for_log(f"{name:<{width}} | up", 15)
        self.family = [child.pid for child in psutil.Process(self.pid).children(recursive=True)]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Started]]:
    """Supervisors put here are killed at the end, whatever happened."""
    running: list[Started] = []
    yield running
    for one in running:
        one.kill_all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_all_parts_in_good_order(
    number: signal.Signals, tmp_path: Path, started: list[Started]
) -> None:
    one = Started(tmp_path, {"left": _OBEDIENT, "right": _OBEDIENT})
    started.append(one)
    assert len(one.family) >= 2
    one.send(number)
    assert one.wait_exit(10) == 0
    assert all(gone(pid) for pid in one.family)


def test_a_part_that_ends_by_itself_takes_the_others_along_and_is_named(
    tmp_path: Path, started: list[Started]
) -> None:
    one = Started(tmp_path, {"brief": _BRIEF, "other": _OBEDIENT})
    started.append(one)
    assert one.wait_exit(10) == 1
    assert "brief | ended by itself (7)" in one.log()
    assert all(gone(pid) for pid in one.family)


def test_a_part_that_ignores_the_signal_is_killed_when_its_time_is_up(
    tmp_path: Path, started: list[Started]
) -> None:
    one = Started(tmp_path, {"stubborn": _STUBBORN}, grace_s=1)
    started.append(one)
    one.send(signal.SIGTERM)
    assert one.wait_exit(10) == 0
    assert all(gone(pid) for pid in one.family)


def test_a_second_stop_signal_ends_the_waiting(tmp_path: Path, started: list[Started]) -> None:
    one = Started(tmp_path, {"stubborn": _STUBBORN}, grace_s=600)
    started.append(one)
    one.send(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):  # the first one alone waits for the part
        one.process.wait(timeout=1)
    one.send(signal.SIGINT)
    assert one.wait_exit(10) == 0
    assert all(gone(pid) for pid in one.family)


def test_a_killed_supervisor_leaves_nothing_behind(tmp_path: Path, started: list[Started]) -> None:
    one = Started(tmp_path, {"stubborn": _STUBBORN, "other": _OBEDIENT})
    started.append(one)
    one.kill9()
    wait_until(lambda: all(gone(pid) for pid in one.family), 5, "all parts are gone")
