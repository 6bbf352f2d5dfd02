"""Carries out a plan: every kind of fault is a method's line in ``_FAULTS``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import redis
from sqlalchemy import make_url

from tests.support.processes import LoggedProcess
from tests.torture.keeper import Keeper, family
from tests.torture.plan import Fault
from tests.torture.scene import Scene

_TICK_S = 0.1
_LONG_S = 2.0
_FLAPS, _FLAP_PAUSE_S = 3, 0.5
_LOCKER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
time.sleep(float(sys.argv[2]))
"""


class Chaos:
    """``done`` counts what was carried out, by kind; ``skipped`` what found its target down already."""

    def __init__(self, scene: Scene, keeper: Keeper, tell: Callable[[str], None] = lambda _: None) -> None:
        self._scene, self._keeper, self._tell = scene, keeper, tell
        self._undo: dict[
            str, tuple[float, Callable[[], None]]
        ] = {}  # by target: when to end what was done to it
        self._lockers: list[subprocess.Popen[bytes]] = []
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def run(self, plan: Sequence[Fault], seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Break things by ``plan`` for ``seconds``, or until it is ``enough``; then heal everything."""
        begun = time.monotonic()
        waiting = list(plan)
        while (now := time.monotonic() - begun) < seconds and not enough():
            while waiting and waiting[0].at_s <= now:
                self._carry_out(waiting.pop(0))
            self._undo_due()
            self._keeper.tick()
            time.sleep(_TICK_S)
        self.heal()

    def heal(self) -> None:
        """From now on nothing is broken any more."""
        self._undo_due(everything=True)
        late = sum(locker.wait() != 0 for locker in self._lockers)  # others held the lock all the time
        self.done["db-write-lock"] -= late
        self.skipped["db-write-lock"] += late
        self._keeper.armed = False
        self._keeper.resume_all()

    def _carry_out(self, fault: Fault) -> None:
        target, _, deed = fault.kind.partition("-")
        if target in self._undo:
            self.skipped[fault.kind] += 1
            return
        self._tell(f"{fault.at_s:6.1f} s  {fault.kind}")
        try:
            getattr(self, f"_{target}")(deed, fault)
        except redis.RedisError:
            self.skipped[fault.kind] += 1  # Redis did not answer whoever wanted to harm it
        except ProcessLookupError:
            self.skipped[fault.kind] += 1  # it was dying anyway
        else:
            self.done[fault.kind] += 1

    def _later(self, target: str, hold_s: float, undo: Callable[[], None]) -> None:
        self._undo[target] = (time.monotonic() + hold_s, undo)

    def _undo_due(self, *, everything: bool = False) -> None:
        now = time.monotonic()
        for target, (at, undo) in list(self._undo.items()):
            if everything or now >= at:
                del self._undo[target]
                undo()
                took_s = time.monotonic() - now
                if took_s > _LONG_S:
                    self._tell(f"          {target} took {took_s:.1f} s to come back")

    # --- processes -------------------------------------------------------------------------------------------------

    def _worker(self, deed: str, fault: Fault) -> None:
        if deed == "stop":
            worker = self._scene.workers[fault.pick % len(self._scene.workers)]
            for pid in reversed(family(worker)):  # all of it, as where its machine is frozen
                os.kill(pid, signal.SIGSTOP)
            return
        self._signal(self._scene.workers, deed, fault)

    def _beat(self, deed: str, fault: Fault) -> None:
        self._signal(self._scene.beats, deed, fault)

    def _api(self, deed: str, fault: Fault) -> None:
        self._signal([self._scene.api], deed, fault)

    def _child(self, deed: str, fault: Fault) -> None:
        children = [pid for worker in self._scene.workers for pid in family(worker)[1:]]
        if children:
            pid = children[fault.pick % len(children)]
            if deed == "stop":
                self._keeper.alone.add(pid)
            os.kill(pid, _SIGNALS[deed])

    @staticmethod
    def _signal(processes: Sequence[LoggedProcess], deed: str, fault: Fault) -> None:
        process = processes[fault.pick % len(processes)]
        if process.alive():
            process.send(_SIGNALS[deed])

    # --- Redis -----------------------------------------------------------------------------------------------------

    def _redis(self, deed: str, fault: Fault) -> None:
        server = self._scene.redis
        if deed == "kill9":
            server.kill9()
            self._later("redis", fault.hold_s, lambda: self._keeper.start_server(server))
        elif deed == "flap":
            for _ in range(_FLAPS):
                server.kill9()
                self._keeper.start_server(server)
                time.sleep(_FLAP_PAUSE_S)
        elif deed == "stop":
            server.pause()
            self._later("redis", fault.hold_s, server.resume)
        else:
            self._ask_redis(deed, fault)

    def _ask_redis(self, deed: str, fault: Fault) -> None:
        client = self._scene.redis.client()
        try:
            if deed == "flushall":
                client.flushall()
            elif deed == "client-pause":
                client.client_pause(int(fault.hold_s * 1000))
            else:
                policy = {"full-noeviction": "noeviction", "full-lru": "allkeys-lru"}[deed]
                client.config_set("maxmemory-policy", policy)
                client.config_set("maxmemory", int(client.info("memory")["used_memory"]) - 1000)
                self._later("redis", fault.hold_s, self._make_room)
        finally:
            client.close()

    def _make_room(self) -> None:
        client = self._scene.redis.client(timeout_s=10)
        try:
            client.config_set("maxmemory", 0)
            client.config_set("maxmemory-policy", "noeviction")
        finally:
            client.close()

    # --- the database ----------------------------------------------------------------------------------------------

    def _db(self, deed: str, fault: Fault) -> None:
        server = self._scene.database
        if deed == "write-lock":
            self._lock(fault)
            return
        assert server is not None
        if deed == "terminate-backends":
            self._scene.terminate_backends()
            return
        if deed == "immediate-stop":
            self._scene.stop_immediately()
        else:
            server.kill9()
        self._later("db", fault.hold_s, lambda: self._keeper.start_server(server))

    def _lock(self, fault: Fault) -> None:
        """Somebody else's process holds SQLite's one write lock."""
        urls = [self._scene.where.queue_url, self._scene.where.erp_url]
        path = str(make_url(urls[fault.pick % 2]).database)
        command = [sys.executable, "-c", _LOCKER, path, str(fault.hold_s)]
        self._lockers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))


_SIGNALS = {
    "kill9": signal.SIGKILL,
    "sigterm": signal.SIGTERM,
    "sigquit": signal.SIGQUIT,
    "stop": signal.SIGSTOP,
}
