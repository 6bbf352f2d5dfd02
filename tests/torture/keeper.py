"""The supervisor of a tortured set: starts again what has died, and lets go on what was frozen past every lease."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path

import psutil

from staging.embedded.errors import EmbeddedServerError
from staging.embedded.server import EmbeddedServer
from tests.support.processes import LoggedProcess
from tests.support.waiting import wait_until
from tests.torture.plan import api_failpoints, failpoints
from tests.torture.scene import Scene

_RESTART_AFTER_S = 0.5
_BEYOND_LEASE_S = 12.0
_MAIN_LATER_S = 2.5
_SERVER_BACK_S = 60.0


class Keeper:
    """``tick`` often, from the thread that started the processes (the kernel ties their lives to it)."""

    def __init__(self, scene: Scene, held: Callable[[], set[tuple[str, str]]]) -> None:
        """``held``: operations that are being executed, with their fencing tokens."""
        self._scene, self._held = scene, held
        self._lease_s = float(scene.env["OPSTAGE_LEASE_S"])
        self._in_hand: set[tuple[str, str]] | None = None
        self._thawed: dict[int, float] = {}  # workers whose children go on already → since when
        self._dead_since: dict[str, float] = {}
        self._stopped_since: dict[int, float] = {}
        self._starts: Counter[str] = Counter()
        self._armed: list[
            tuple[dict[str, str], Path]
        ] = []  # what a start was to meet, and where it says it did
        self._fired_before: Counter[str] = Counter()
        self.armed = True  # whether workers started from now on meet a failpoint
        self.alone: set[int] = set()  # children that are frozen while their worker lives on
        self.resumed = 0

    @property
    def restarts(self) -> int:
        return sum(count - 1 for count in self._starts.values())

    def fired(self) -> Counter[str]:
        """Failpoints that fired, by window and action."""
        return self._fired_before + Counter(name for name, _ in self._met())

    def _met(self) -> list[tuple[str, Path]]:
        return [
            (f"{path.name}:{actions[path.name]}", path)
            for actions, folder in self._armed
            for path in folder.iterdir()
        ]

    def _arm_again(self) -> None:
        """Where the windows were chosen for what they show, once is a matter of luck: whoever was frozen may have had
        an operation in hand that changes nothing."""
        for name, path in self._met():
            self._fired_before[name] += 1
            path.unlink()

    def start_all(self) -> None:
        for process in self._scene.processes:
            self._start(process)

    def tick(self) -> None:
        now = time.monotonic()
        for process in self._scene.processes:
            if process.alive():
                self._dead_since.pop(process.name, None)
            elif now - self._dead_since.setdefault(process.name, now) > _RESTART_AFTER_S:
                self._start(process)
        self._wake(now)

    def resume_all(self) -> None:
        """Let everything go on that is frozen."""
        for pid in self._stopped():
            _continue(pid)

    def start_server(self, server: EmbeddedServer) -> None:
        """Start, again and again while what is left of its predecessor is still going away."""

        def started() -> bool:
            try:
                server.start()
            except EmbeddedServerError:
                return False
            return True

        wait_until(started, _SERVER_BACK_S, f"{server.name} is back", poll_s=0.2)

    def _start(self, process: LoggedProcess) -> None:
        self._arm(process)
        self._starts[process.name] += 1
        self._dead_since.pop(process.name, None)
        process.start(wait=False)

    def _arm(self, process: LoggedProcess) -> None:
        """Another choice of windows for every start of a worker or the API; none any more once the run is over."""
        process.env.pop("OPSTAGE_FAILPOINTS", None)
        number = self._starts[process.name]
        chosen = self._windows(process, number) if self.armed else ""
        if chosen:
            folder = self._scene.folder / f"{process.name}-{number}"
            folder.mkdir()
            self._armed.append((dict(part.split(":") for part in chosen.split(";")), folder))
            process.env |= {"OPSTAGE_FAILPOINTS": chosen, "OPSTAGE_FAILPOINT_DIR": str(folder)}

    def _windows(self, process: LoggedProcess, number: int) -> str:
        options = self._scene.options
        if options.windows:
            return options.windows if process is self._scene.workers[0] else ""
        if process is self._scene.api:
            return api_failpoints(options.seed, number)
        return failpoints(options.seed, process.name, number) if process in self._scene.workers else ""

    def _wake(self, now: float) -> None:
        self._freeze_whole_workers()
        self._stopped_since = {pid: self._stopped_since.get(pid, now) for pid in self._stopped()}
        for process in self._scene.processes:
            own = [pid for pid in family(process) if pid in self._stopped_since]
            if not own:
                continue
            stopped_s = now - min(self._stopped_since[pid] for pid in own)
            if process not in self._scene.workers:
                if stopped_s > self._lease_s:
                    self.resumed += sum(map(_continue, own))
            elif own == [process.pid] and process.pid in self._thawed:
                if now - self._thawed[process.pid] > _MAIN_LATER_S:
                    self.resumed += _continue(process.pid)
                    del self._thawed[process.pid]
            elif self._was_taken_over(stopped_s):
                # The children first: they go on with what they had in hand, and only then hear of time limits.
                self.resumed += sum(_continue(pid) for pid in own if pid != process.pid)
                self._thawed[process.pid] = now
                self._in_hand = None
                if self._scene.options.windows:
                    self._arm_again()

    def _was_taken_over(self, stopped_s: float) -> bool:
        """True once somebody else has what was held when the lease lapsed; at the latest after a while."""
        if stopped_s < self._lease_s:
            return False
        if self._in_hand is None:
            self._in_hand = self._held()
        late = stopped_s > self._lease_s + _BEYOND_LEASE_S
        return late or (stopped_s > self._lease_s + 1 and not self._in_hand & self._held())

    def _freeze_whole_workers(self) -> None:
        """A child frozen at a failpoint takes its worker along: else that one's hard time limit would kill it before
        its lease lapses. One worker at a time: somebody has to be there to take over what it holds."""
        frozen = [w for w in self._scene.workers if any(map(_is_stopped, set(family(w)) - self.alone))]
        frozen.sort(key=lambda w: min((self._stopped_since.get(pid, inf) for pid in family(w)), default=inf))
        for worker in frozen[:1]:
            worker.send(signal.SIGSTOP)
        for worker in frozen[1:]:
            for pid in family(worker):
                _continue(pid)

    def _stopped(self) -> list[int]:
        return [pid for process in self._scene.processes for pid in family(process) if _is_stopped(pid)]


def family(process: LoggedProcess) -> list[int]:
    """The process and its children, those that live."""
    if not process.alive():
        return []
    try:
        return [process.pid, *process.child_pids()]
    except psutil.NoSuchProcess:
        return []


def _is_stopped(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _continue(pid: int) -> int:
    """1 if there was somebody to wake."""
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return 0
    return 1
