"""The confirm endpoint over HTTP on one API process: how many a second, and how long one takes at half of that."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median, quantiles
from urllib.parse import urlsplit

from sqlalchemy import text

from staging.api.auth.static import issue_token
from staging.bootstrap import open_services
from staging.domain.identity import Actor, ActorKind, Tenant
from tests.benchmarks.arms import ARMS
from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.opstage import Opstage
from tests.benchmarks.erp.client import asked_for
from tests.benchmarks.reference import outcome
from tests.benchmarks.reference.orders import SUBSIDIARY, USER, brands_of, payload_of
from tests.benchmarks.servers import Bench
from tests.benchmarks.throughput import WrongOutcome
from tests.support.api import ApiProcess
from tests.support.processes import settings_from

_CLIENTS = 8
_WARM_UP = 100


@dataclass(frozen=True, slots=True)
class Confirms:
    """``per_s``: closed loop of ``clients`` connections; milliseconds are of answers at ``offered_per_s``."""

    arm: str
    clients: int
    n: int
    per_s: float
    offered_per_s: float
    p50: float
    p99: float
    load: float


def measure(
    bench: Bench,
    *,
    count: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Confirms]:
    """``count`` confirms at full speed, then as many at half of it, on the form. No worker runs beside the API."""
    arm = ARMS["opstage-form"]
    if not isinstance(arm, Opstage):
        raise TypeError("the form's arm is Opstage's")
    with bench.database() as url:
        bench.redis.client().flushall()
        folder = bench.folder / "confirm"
        folder.mkdir()
        run = Run(bench, url, folder, settings=settings)
        arm.prepare(run)
        env = arm.env(run)
        paths = _prepared(env, 2 * count + _WARM_UP, bench.tenants)
        tokens = _tokens(folder, bench.tenants)
        with ApiProcess(env, folder) as api:
            warm, fast, slow = paths[:_WARM_UP], paths[_WARM_UP : _WARM_UP + count], paths[_WARM_UP + count :]
            _at_full_speed(api.url, tokens, warm)
            per_s = _at_full_speed(api.url, tokens, fast)
            waits = _at_a_rate(api.url, tokens, slow, per_s / 2)
        with run.connect() as connection:
            confirmed = connection.execute(
                text(
                    outcome.names(
                        connection, """SELECT count(*) FROM ai_op_queue WHERE "sStatus" = 'pending'"""
                    )
                )
            ).scalar_one()
        if confirmed != len(paths):
            raise WrongOutcome(f"{confirmed} operations confirmed, not {len(paths)}")
    found = Confirms(
        "opstage-form",
        _CLIENTS,
        count,
        per_s,
        per_s / 2,
        median(waits),
        quantiles(waits, n=100)[98],
        os.getloadavg()[0],
    )
    say(f"  confirm {found.per_s:.0f}/s; at half of it p50 {found.p50:.1f}, p99 {found.p99:.1f} ms")
    return [found]


def _prepared(env: Mapping[str, str], count: int, tenants: int) -> list[tuple[str, str]]:
    """(tenant, path of its confirm) of fresh preparations."""
    found = []
    with open_services(settings_from(env)) as services:
        for number in range(count):
            brands = brands_of(number % tenants)
            actor = Actor(Tenant(brands, SUBSIDIARY), USER)
            made = services.prepare.prepare(actor, asked_for(payload_of(number)))
            found.append((brands, f"/v1/preparations/{made.preparation_id}/confirm"))
    return found


def _tokens(folder: Path, tenants: int) -> dict[str, str]:
    return {
        brands_of(number): issue_token(
            folder / "tokens.json",
            user=USER,
            brands=brands_of(number),
            subsidiary=SUBSIDIARY,
            kind=ActorKind.PERSON,
            ttl_s=3600,
        )
        for number in range(tenants)
    }


class _Client:
    """One kept-alive connection."""

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._headers = {brands: {"Authorization": f"Bearer {token}"} for brands, token in tokens.items()}

    def confirm(self, brands: str, path: str) -> None:
        self._http.request("POST", path, headers=self._headers[brands])
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status != 202:
            raise WrongOutcome(f"confirm answered {answer.status}: {body[:500]!r}")


def _at_full_speed(url: str, tokens: Mapping[str, str], paths: Sequence[tuple[str, str]]) -> float:
    """Confirms a second with ``_CLIENTS`` connections that each wait for their answer."""
    start = time.perf_counter()
    _spread(paths, lambda take: _take_all(_Client(url, tokens), take))
    return len(paths) / (time.perf_counter() - start)


def _at_a_rate(
    url: str, tokens: Mapping[str, str], paths: Sequence[tuple[str, str]], per_s: float
) -> list[float]:
    """Milliseconds from when each confirm was due (so a stall counts for all it delays) to its answer."""
    start = time.perf_counter() + 0.1
    due = {path: start + number / per_s for number, (_, path) in enumerate(paths)}
    waits: list[float] = []

    def work(take: SimpleQueue[tuple[str, str]]) -> None:
        client = _Client(url, tokens)
        for brands, path in _taken(take):
            time.sleep(max(0.0, due[path] - time.perf_counter()))
            client.confirm(brands, path)
            waits.append((time.perf_counter() - due[path]) * 1000)

    _spread(paths, work)
    return waits


def _take_all(client: _Client, take: SimpleQueue[tuple[str, str]]) -> None:
    for brands, path in _taken(take):
        client.confirm(brands, path)


def _taken(take: SimpleQueue[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    while True:
        try:
            yield take.get_nowait()
        except Empty:
            return


def _spread(paths: Sequence[tuple[str, str]], work: Callable[[SimpleQueue[tuple[str, str]]], None]) -> None:
    """Run ``work`` in as many threads as there are clients; the first error of any is raised."""
    waiting: SimpleQueue[tuple[str, str]] = SimpleQueue()
    for path in paths:
        waiting.put(path)
    with ThreadPoolExecutor(_CLIENTS) as pool:
        for done in [pool.submit(work, waiting) for _ in range(_CLIENTS)]:
            done.result()
