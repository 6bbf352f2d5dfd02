"""A Celery worker by the command line of ``opstage worker``, forked from a server that has Celery imported: for tests
that lose their worker a hundred times. Main process, pool and signals are the ones of any other worker."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from staging.cli.command_lines import worker_command
from tests.support.forked import Forked
from tests.support.processes import settings_from
from tests.support.waiting import wait_until

_READY = b" ready."
_READY_S = 60.0


class ForkedWorker:
    """Like ``processes.WorkerProcess``. ``env``: OPSTAGE_* settings; ``folder``: where its log is and it runs."""

    def __init__(self, env: Mapping[str, str], folder: Path, *, concurrency: int) -> None:
        self.env, self._folder = dict(env), folder
        self._command = worker_command(settings_from(env), concurrency=concurrency, name="worker")
        self._process: Forked | None = None

    def start(self, *, wait: bool = True) -> Self:
        """Start; with ``wait``, return once it takes tasks."""
        path = self._folder / "worker.log"
        path.touch()
        already = path.stat().st_size
        self._process = Forked(_celery, self.env, path, self._command, str(self._folder))
        if wait:
            wait_until(lambda: _READY in path.read_bytes()[already:], _READY_S, "the worker is ready")
        return self

    @property
    def process(self) -> Forked:
        if self._process is None:
            raise AssertionError("the worker has not been started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self._process is not None and self._process.alive()

    def send(self, number: signal.Signals) -> None:
        self.process.send(number)

    def wait_exit(self, timeout_s: float) -> int:
        return self.process.wait_exit(timeout_s)

    def wait_for_log(self, text: str, timeout_s: float) -> None:
        """Return once ``text`` is in its log."""
        wait_until(lambda: text in self.process.log(), timeout_s, f"{text!r} in the worker's log")

    def kill9(self) -> None:
        """SIGKILL to the main process alone."""
        self.send(signal.SIGKILL)
        self.wait_exit(10)

    def stop(self, timeout_s: float) -> None:
        """SIGTERM: it finishes what it has begun. AssertionError where that takes longer."""
        self.send(signal.SIGTERM)
        self.wait_exit(timeout_s)

    def kill_all(self) -> None:
        """SIGKILL to it and its children."""
        os.killpg(self.pid, signal.SIGKILL)
        self.wait_exit(10)


def _celery(command: list[str], folder: str) -> None:
    os.setsid()
    os.chdir(folder)
    # command: the interpreter, "-m", "celery", and its arguments
    sys.argv = ["celery", *command[3:]]
    runpy.run_module(command[2], run_name="__main__")
