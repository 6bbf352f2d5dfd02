"""Processes of ours started fast: forked from a server that has everything imported, dying with the test run.

With OPSTAGE_FAILPOINT* in their settings they die, stop or wait where a test wants them to.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from staging import failpoints
from tests.support.processes import clean_environment

_PR_SET_PDEATHSIG = 1
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        *(__name__, "migrations.run", "workers.runtime", "workers.erp.demo", "tests.support.demo_effects"),
        *("celery.bin.celery", "celery.bin.worker", "celery.worker", "celery.concurrency.prefork"),
        "kombu.transport.redis",
    ]
)


def die_with_parent() -> None:
    """Whatever ends the test run ends this process: one that is stopped would outlive it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    die_with_parent()  # the server, when it imports this first


class Forked:
    """Runs ``work(*arguments)`` with ``env``, a function of some module, in a process of its own; its output goes to
    ``log_path``."""

    def __init__(
        self, work: Callable[..., None], env: Mapping[str, str], log_path: Path, *arguments: Any
    ) -> None:
        self.log_path = log_path
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(work, dict(env), str(log_path), arguments), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    def alive(self) -> bool:
        return self._process.exitcode is None

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


def _run(work: Callable[..., None], env: dict[str, str], log_path: str, arguments: tuple[Any, ...]) -> None:
    die_with_parent()
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.INFO)
    wanted = clean_environment(env)
    os.environ.clear()
    os.environ.update(wanted)
    importlib.reload(failpoints)  # armed by the environment, once, at import
    work(*arguments)
