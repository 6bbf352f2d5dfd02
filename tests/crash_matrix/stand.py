"""One set of processes - a worker that can be held at windows, beat, clients - and the four ways of losing one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.crash_matrix.cells import Place
from tests.crash_matrix.watch import Watch
from tests.crash_matrix.world import MatrixWorld, matrix_world
from tests.support.demo_effects import ALL_QUICK
from tests.support.forked import Forked
from tests.support.forked_worker import ForkedWorker
from tests.support.private import EmbeddedRedis, open_folder
from tests.support.processes import BeatProcess, gone
from tests.support.waiting import wait_until

# A killed child's task keeps its slot for ten seconds (Celery's lost_worker_timeout): room for several rounds of them.
_CHILDREN = {"kill": 24}
_CHILDREN_ELSE = 10
_DEAD_S = 40.0
_STOPPED_S = 1.5  # how long the others get, at most, to go on without who is stopped


class Stand:
    """``strike`` loses processes by the stand's signal and, where that was the worker, starts it again."""

    def __init__(self, world: MatrixWorld, watch: Watch, worker: ForkedWorker, signal_name: str) -> None:
        self.world, self.watch, self.worker, self.signal = world, watch, worker, signal_name
        self._clients: list[Forked] = []

    def strike(self, pids: Sequence[int], over: Callable[[], bool]) -> str:
        """Lose these children, which are held at a window; returns what was seen of it.

        ``over``: nothing more is to be expected of the others while they are stopped.
        """
        if self.signal == "stop":
            return self._stop(pids, over)
        if self.signal == "kill":
            self.kill(pids)
            return f"SIGKILL, {_listed(pids)} gone"
        main = self.worker.pid
        if self.signal == "kill-main":
            self.worker.kill9()
        else:
            self.worker.send(signal.SIGQUIT)
        self.worker.wait_exit(_DEAD_S)
        wait_until(lambda: all(map(gone, pids)), _DEAD_S, "the children have gone with their main process")
        self.worker.start(wait=False)
        return f"{self.signal}, main process {main} and {_listed(pids)} gone"

    def strike_one(self, process: Forked, over: Callable[[], bool]) -> str:
        """The same for a client or a migration, which is one process."""
        if self.signal == "stop":
            seen = self._stop([process.pid], over)
            process.wait_exit(_DEAD_S)
            return seen
        number = signal.SIGQUIT if self.signal == "quit" else signal.SIGKILL
        process.send(number)
        if process.wait_exit(_DEAD_S) != -number:
            raise AssertionError(f"it did not die of {number.name}:\n{process.log()}")
        return f"{number.name}, {process.pid} gone"

    def kill(self, pids: Sequence[int]) -> None:
        """SIGKILL whatever the stand's signal is: part of a preparation."""
        for pid in set(pids):
            _send(pid, signal.SIGKILL)
        wait_until(lambda: all(map(gone, pids)), _DEAD_S, "the killed are gone")

    def client(self, name: str, work: Callable[..., None], *arguments: Any) -> Forked:
        """Start a process of somebody else's that is held at windows like the worker."""
        log = self.watch.folder.parent / f"{name}.log"
        self._clients.append(Forked(work, self.worker.env, log, *arguments))
        return self._clients[-1]

    def _stop(self, pids: Sequence[int], over: Callable[[], bool]) -> str:
        for pid in set(pids):
            _send(pid, signal.SIGSTOP)
        self.watch.let_go(pids)  # as soon as it is awake
        try:
            wait_until(over, _STOPPED_S, "the others go on")
            seen = "the others went on without it"
        except AssertionError:
            seen = "it holds what the others would need"
        for pid in set(pids):
            _send(pid, signal.SIGCONT)
        self.watch.wait_gone_on(pids)
        return f"SIGSTOP, leases set back, {seen}, SIGCONT, {_listed(pids)} went on"

    def come_to_rest(self, timeout_s: float) -> None:
        """The worker ends, and before that whatever those who were stopped, or late, had still to do."""
        try:
            self.worker.stop(timeout_s)
        except AssertionError:
            # Celery waits for the tasks of killed children; who is alive has finished long since.
            self.worker.kill_all()

    def close(self) -> None:
        for client in self._clients:
            client.close()


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # a time limit was faster


def _listed(pids: Sequence[int]) -> str:
    return ", ".join(str(pid) for pid in sorted(set(pids)))


@contextmanager
def open_stand(
    place: Place, signal_name: str, settings: dict[str, str] | None = None, *, batch: bool = False
) -> Iterator[Stand]:
    """A ready stand on fresh databases; on leaving, whatever still runs is killed. ``batch``: a worker may take
    operations for quick that it has never seen, so that they share a commit."""
    with open_folder() as folder, EmbeddedRedis(folder / "redis") as redis:
        files = Path(folder / "files")
        files.mkdir()
        if batch:
            settings = {"OPSTAGE_GROUP_COMMIT_S": "60", **(settings or {})}
        with matrix_world(place, redis.url, files, settings) as world:
            watch = Watch(files / "watch")
            held = {**world.env, "OPSTAGE_FAILPOINT_HOLD": str(watch.folder)}
            if batch:
                held[ALL_QUICK] = "1"
            worker = ForkedWorker(held, files, concurrency=_CHILDREN.get(signal_name, _CHILDREN_ELSE))
            beat = BeatProcess(world.env, files)
            stand = Stand(world, watch, worker, signal_name)
            try:
                worker.start()
                beat.start()
                yield stand
            finally:
                stand.close()
                for process in (worker, beat):
                    if process.alive():
                        process.kill_all()
