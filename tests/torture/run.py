"""One run: start everything, let clients and chaos loose, heal, wait, judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from staging.api.auth.static import issue_token
from staging.bootstrap import open_dispatcher, open_services
from staging.domain.identity import ActorKind
from tests.support.processes import settings_from
from tests.support.queue_rows import TENANT
from tests.support.waiting import wait_until
from tests.torture.chaos import Chaos
from tests.torture.clients import Client
from tests.torture.doors import BOSS, USER, Door, HttpDoor, ServiceDoor
from tests.torture.keeper import Keeper
from tests.torture.listener import Listener
from tests.torture.log import ClientLog
from tests.torture.payloads import make_payload, plain_payload
from tests.torture.plan import kinds_of, make_plan
from tests.torture.scene import Options, Scene, open_scene
from tests.torture.verdict import Judge

_READY_S = 90.0
_BACKLOG = 120  # clients wait above it: what is accepted has to be executed in the end
_JOIN_S = 60.0


@dataclass
class Report:
    """What a run did and what came of it; ``problems`` empty: every promise was kept."""

    options: Options
    clocks: tuple[str, ...]
    ran_s: float
    faults: dict[str, int]
    skipped: dict[str, int]
    failpoints: dict[str, int]
    restarts: int
    clients: dict[str, int]
    operations: int
    codes: dict[int, int]
    reasons: dict[str, int]
    moves: dict[str, int]
    shared_commits: int
    effects: int
    published: int
    rest_s: float
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        run = {
            "db": self.options.kind,
            "shared": self.options.shared,
            "seconds": self.options.seconds,
            "seed": self.options.seed,
            "pace": self.options.pace,
            "settings": dict(self.options.settings),
            "plant": self.options.plant,
        }
        rest = {name: value for name, value in vars(self).items() if name != "options"}
        return {**run, "verdict": "failed" if self.problems else "clean", **rest}


def torture(
    options: Options,
    logs: Path,
    tell: Callable[[str], None] = lambda _: None,
    *,
    until_broken: bool = False,
) -> Report:
    """Run it. ``logs``: a folder for output of all processes; ``tell``: gets a line for each fault.

    ``until_broken``: end at the first promise that is seen broken, and do not wait for anything to come to rest.
    """
    with open_scene(options, logs) as scene:
        log = ClientLog()
        judge = Judge(scene, log)
        keeper = Keeper(scene, judge.held)
        chaos = Chaos(scene, keeper, tell)
        keeper.start_all()
        wait_until(lambda: _all_up(scene), _READY_S, "workers and API are up", poll_s=0.1)
        listener = Listener(lambda timeout_s: scene.redis.client(timeout_s))
        listener.start()
        begun = time.monotonic()
        with _clients(scene, log, judge, until_broken=until_broken) as (door, gauge):
            plan = make_plan(options.seed, options.seconds, options.kinds or kinds_of(options.kind))
            chaos.run(plan, options.seconds, lambda: bool(gauge.broken))
        ran_s = time.monotonic() - begun
        rest_s = 0.0 if gauge.broken else judge.come_to_rest(keeper, door)
        listener.end()
        found = judge.verdict(listener.heard)
        return Report(
            options=options,
            clocks=scene.clocks,
            ran_s=round(ran_s, 1),
            faults={kind: count for kind, count in sorted(chaos.done.items()) if count},
            skipped={kind: count for kind, count in sorted(chaos.skipped.items()) if count},
            failpoints=dict(sorted(keeper.fired().items())),
            restarts=keeper.restarts,
            clients=dict(sorted(log.counts.items())),
            operations=len(log.accepted),
            codes={int(code): count for code, count in sorted(found.codes.items())},
            reasons=dict(judge.reasons().most_common()),
            moves=dict(judge.moves().most_common()),
            shared_commits=judge.shared_commits(),
            effects=found.effects,
            published=len(listener.heard),
            rest_s=round(rest_s, 1),
            problems=gauge.broken or found.problems,
        )


def _all_up(scene: Scene) -> bool:
    for process in scene.processes:
        if not process.alive():
            raise AssertionError(f"{process.name} ended at once:\n{process.log()[-2000:]}")
    return all(p.ready_text in p.log() for p in scene.processes if p not in scene.beats)


@contextmanager
def _clients(
    scene: Scene, log: ClientLog, judge: Judge, *, until_broken: bool
) -> Iterator[tuple[Door, _Gauge]]:
    """Clients at work while the block runs; yields one of their doors, and the gauge they go by."""
    stopped = threading.Event()
    with ExitStack() as stack:
        doors = _doors(scene, stack)
        pool = stack.enter_context(ThreadPoolExecutor(24))
        foreign = create_engine(scene.where.queue_url, poolclass=NullPool)
        dispatcher = open_dispatcher(settings_from(scene.env))
        gauge = _Gauge(judge, stopped, until_broken)
        threads: list[threading.Thread] = [gauge]
        # On SQLite whoever executes holds up all others.
        pace = min(scene.options.pace, 0.1 if scene.where.kind == "sqlite" else inf)
        payload = partial(plain_payload if scene.options.plain else make_payload, pace=pace)
        for number in range(scene.options.clients):
            seed = f"client {scene.options.seed} {number}"
            client = Client(seed, doors, log, pool, foreign, dispatcher, stopped, payload)
            threads.append(_Loop(client, gauge, log, stopped))
        for thread in threads:
            thread.start()
        try:
            yield doors[0], gauge
        finally:
            stopped.set()
            for thread in threads:
                thread.join(_JOIN_S)
            if any(thread.is_alive() for thread in threads):
                log.problem("a client is stuck: some call never returned")


class _Gauge(threading.Thread):
    """How many operations have not come to an end, about; with ``strict``, what is broken beyond repair."""

    def __init__(self, judge: Judge, stopped: threading.Event, strict: bool) -> None:
        super().__init__(daemon=True)
        self._judge, self._stopped, self._strict = judge, stopped, strict
        self.backlog = 0
        self.broken: list[str] = []

    def run(self) -> None:
        while not self._stopped.wait(0.5):
            try:
                self.backlog = len(self._judge.pending())
                if self._strict:
                    self.broken = self.broken or self._judge.broken_already()
            except SQLAlchemyError:
                self.backlog = _BACKLOG  # the database is down: nobody needs more


class _Loop(threading.Thread):
    def __init__(self, client: Client, gauge: _Gauge, log: ClientLog, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client, self._gauge, self._log, self._stopped = client, gauge, log, stopped

    def run(self) -> None:
        while not self._stopped.is_set():
            if self._gauge.backlog >= _BACKLOG:
                self._stopped.wait(0.1)
                continue
            try:
                self._client.step()
            except Exception as error:  # noqa: BLE001 - whatever a client meets and did not expect is a finding
                self._log.problem(f"a client met {type(error).__name__}: {str(error)[:500]}")


def _doors(scene: Scene, stack: ExitStack) -> list[Door]:
    """Two of the services, one of them with a single attempt for all it confirms, and HTTP."""
    usual = stack.enter_context(open_services(settings_from(scene.env)))
    once = stack.enter_context(open_services(settings_from({**scene.env, "OPSTAGE_MAX_ATTEMPTS": "1"})))
    inside: list[Door] = [ServiceDoor(usual), ServiceDoor(once)]
    if not scene.options.http:
        return inside
    tokens = {
        (user, kind): issue_token(
            settings_from(scene.env).tokens_path,
            user=user,
            brands=TENANT.brands_id,
            subsidiary=TENANT.subsidiary_id,
            kind=kind,
            ttl_s=86_400,
        )
        for user, kind in ((USER, ActorKind.AGENT), (USER, ActorKind.PERSON), (BOSS, ActorKind.PERSON))
    }
    http = HttpDoor(scene.api.url, tokens)
    stack.callback(http.close)
    return [*inside, http]
