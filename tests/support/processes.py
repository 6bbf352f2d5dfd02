"""Real worker and beat processes for tests: started, watched, killed, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
import pytest

from staging.cli.command_lines import beat_command, worker_command
from staging.embedded.spawn import guarded, kill_group, stop_group
from staging.settings import Settings
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without its OPSTAGE_* and FLOWER_* variables, plus ``settings``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPSTAGE_", "FLOWER_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **settings}


class LoggedProcess:
    """A process of ours in a session of its own, output in ``log_path``; ends with the test run, however that ends."""

    ready_text: str = ""
    ready_timeout_s = 30.0

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path, name: str) -> None:
        self.command = list(command)
        self.env = clean_environment(env)
        self.folder = folder
        self.name = name
        self.log_path = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> Self:
        """Start; with ``wait``, return once ``ready_text`` is in the log of this start."""
        already = len(self.log())
        with self.log_path.open("ab") as log:
            self._process = guarded(
                self.command, death_signal=signal.SIGKILL, env=self.env, cwd=self.folder, output=log
            )
        if wait:
            self.wait_for_log(self.ready_text, self.ready_timeout_s, after=already)
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError(f"{self.name} has not been started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def started(self) -> bool:
        return self._process is not None

    def alive(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def wait_for_log(self, text: str, timeout_s: float, *, after: int = 0) -> None:
        """Return once ``text`` is in the log beyond position ``after``; fail at once when the process has ended."""

        def seen() -> bool:
            if text in self.log()[after:]:
                return True
            if not self.alive():
                raise AssertionError(f"{self.name} ended with {self.process.returncode}")
            return False

        problem = ""
        try:
            wait_until(seen, timeout_s, f"{text!r} in the log of {self.name}")
        except AssertionError as error:
            problem = str(error)
        if problem:
            pytest.fail(f"{problem}\n{self.log()[after:][-2000:]}", pytrace=False)

    def wait_exit(self, timeout_s: float) -> int:
        """The exit code (negative: the signal), waiting at most ``timeout_s`` seconds."""
        wait_until(lambda: not self.alive(), timeout_s, f"{self.name} ends")
        return int(self.process.returncode)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill9(self) -> None:
        """SIGKILL to the main process alone, as the kernel's out-of-memory killer would."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = 20.0) -> None:
        """SIGTERM, SIGKILL to all of its session after ``timeout_s``. Nothing where it does not run."""
        if self._process is not None:
            stop_group(self._process, signal.SIGTERM, timeout_s)

    def kill_all(self) -> None:
        """SIGKILL to the process and everything in its session."""
        kill_group(self.process)
        self.process.wait()

    def child_pids(self) -> list[int]:
        """Pids of its direct children, oldest first."""
        children = psutil.Process(self.pid).children()
        return [child.pid for child in sorted(children, key=lambda child: child.create_time())]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class WorkerProcess(LoggedProcess):
    """``celery worker`` as ``opstage worker`` starts it. ``env``: OPSTAGE_* settings; ``name`` unique per test."""

    ready_text = " ready."

    def __init__(
        self,
        env: Mapping[str, str],
        folder: Path,
        *,
        name: str = "worker",
        concurrency: int = 1,
    ) -> None:
        settings = settings_from(env)
        command = worker_command(settings, concurrency=concurrency, name=name)
        super().__init__(command, env, folder, name)


class BeatProcess(LoggedProcess):
    """``celery beat`` as ``opstage beat`` starts it."""

    ready_text = "beat: Starting..."

    def __init__(self, env: Mapping[str, str], folder: Path, *, name: str = "beat") -> None:
        super().__init__(beat_command(folder / f"{name}-schedule"), env, folder, name)


def settings_from(env: Mapping[str, str]) -> Settings:
    """The Settings a process with just these OPSTAGE_* variables would load (no .env file)."""
    values = {
        key.removeprefix("OPSTAGE_").lower(): value
        for key, value in env.items()
        if key.startswith("OPSTAGE_")
    }
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """True where no process of that id runs any more (one that only waits to be reaped counts as gone)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
