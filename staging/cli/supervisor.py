"""Several processes as one: their output side by side, all stopped together, none left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from staging.cli.console import pick
from staging.embedded.spawn import guarded, kill_group

_POLL_S = 0.1
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Part:
    """One process of the set; ``env`` is added to what the whole set gets."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


class Supervisor:
    """Runs the parts until a stop signal comes or one of them ends by itself; then ends the others.

    Not honcho: its processes are grandchildren that outlive it when it is killed. Ours get the kernel's death signal
    (or a watchdog's), so not even ``kill -9`` of this process leaves one.
    """

    def __init__(
        self, parts: Sequence[Part], env: Mapping[str, str], cwd: Path, *, grace_s: float = 20.0
    ) -> None:
        """``env``: the complete environment. ``grace_s``: seconds the parts have to end in an orderly way."""
        self._parts = parts
        self._env = env
        self._cwd = cwd
        self._grace_s = grace_s
        self._width = max((len(part.name) for part in parts), default=0)
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._printing = threading.Lock()

    def run(self) -> int:
        """Start all; return 0 after a stop signal, 1 where a part ended by itself. Call from the main thread."""
        readers: list[threading.Thread] = []
        with self._signals_noted():
            try:
                for part in self._parts:
                    if self._stop.is_set():
                        break
                    readers.append(self._start(part))
                return self._wait()
            finally:
                self._stop_all()
                for reader in readers:
                    reader.join(timeout=2)

    def _start(self, part: Part) -> threading.Thread:
        process = guarded(
            part.command,
            death_signal=signal.SIGKILL,
            env={**self._env, **part.env},
            cwd=self._cwd,
            output=subprocess.PIPE,
        )
        self._running[part.name] = process
        reader = threading.Thread(target=self._show, args=(part.name, process), daemon=True)
        reader.start()
        return reader

    def _show(self, name: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 - output=PIPE above
        with process.stdout as lines:
            for raw in lines:
                self._print(name, raw.decode("utf-8", errors="replace").rstrip())

    def _print(self, name: str, text: str) -> None:
        with self._printing:
            try:
                print(f"{name:<{self._width}} | {text}", flush=True)
            except OSError:  # nobody reads us any more (the terminal or the pipe is closed)
                self._stop.set()

    def _wait(self) -> int:
        """Return 0 once told to stop, 1 once a part has ended."""
        while not self._stop.wait(_POLL_S):
            for name, process in self._running.items():
                code = process.poll()
                if code is not None:
                    self._print(
                        name,
                        pick(
                            f"自行退出（代码 {code}），停止其余进程",
                            f"ended by itself ({code}); stopping the rest",
                        ),
                    )
                    return 1
        return 0

    def _stop_all(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + self._grace_s
        while time.monotonic() < deadline and not self._hurry.is_set():
            if all(process.poll() is not None for process in self._running.values()):
                break
            self._hurry.wait(_POLL_S)
        for process in self._running.values():
            kill_group(process)
            process.wait()

    @contextmanager
    def _signals_noted(self) -> Iterator[None]:
        """While the block runs a stop signal asks for an orderly end, a second one for an immediate end."""

        def note(_number: int, _frame: FrameType | None) -> None:
            (self._hurry if self._stop.is_set() else self._stop).set()

        before = {number: signal.signal(number, note) for number in _STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            sys.stdout.flush()
