"""A worker process that runs one batch and ends, started fast: forked from a server that has everything imported.

With OPSTAGE_FAILPOINTS in its settings it dies or stops where a test wants it to.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.support.processes import settings_from
from workers import failpoints
from workers.runtime import build_runtime

_PR_SET_PDEATHSIG = 1
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


class RunOnce:
    """Executes ``ids`` once in a process of its own; log and "claimed N" go to ``log_path``."""

    def __init__(self, env: Mapping[str, str], ids: Sequence[str], log_path: Path) -> None:
        self.log_path = log_path
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(dict(env), list(ids), str(log_path)), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_exit(self, timeout_s: float) -> int:
        """The exit code (negative: the signal)."""
        self._process.join(timeout_s)
        if self._process.exitcode is None:
            raise AssertionError(f"still running after {timeout_s} s:\n{self.log()}")
        return self._process.exitcode

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8") if self.log_path.exists() else ""

    def close(self) -> None:
        """Kill it, if it still runs."""
        self._process.kill()
        self._process.join()


def _run(env: dict[str, str], ids: list[str], log_path: str) -> None:
    ctypes.CDLL(None).prctl(
        _PR_SET_PDEATHSIG, signal.SIGKILL
    )  # a stopped process would outlive a killed test run
    sys.stdout = sys.stderr = open(log_path, "w", buffering=1, encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    os.environ.update(env)
    importlib.reload(failpoints)  # armed by the environment, once, at import
    claimed = build_runtime(settings_from(env)).executor.run_batch(ids)
    print(f"claimed {claimed}")  # noqa: T201 - into the log
