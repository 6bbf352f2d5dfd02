"""What an operation costs as history and tenants grow: one database that is filled up step by step (PostgreSQL)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from staging.bootstrap import open_engine
from staging.domain.identity import new_id
from staging.domain.operation import Operation
from staging.storage import claims
from staging.storage.due import in_turn
from staging.storage.unit_of_work import QueueStore
from tests.benchmarks.arms import ARMS
from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.opstage import Opstage
from tests.benchmarks.reference.orders import orders
from tests.benchmarks.servers import Bench, bench
from tests.benchmarks.throughput import WrongOutcome, one
from tests.support.processes import settings_from

_CLAIMS = 30
_BATCH = 10
_BYTES = 60  # of payload in a row of history: the indexes are as deep, the disk is not as full


@dataclass(frozen=True, slots=True)
class Grown:
    """At ``finished`` rows: milliseconds to look for due rows and to claim ten (medians), and CPU of a whole run."""

    finished: int
    tenants: int
    due_ms: float
    claim_ms: float
    ops_per_s: float
    ratio: float
    worker_cpu_ms: float
    database_cpu_ms: float


def measure(
    pairs: Sequence[tuple[int, int]],
    *,
    arm: str = "opstage-handler",
    n: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Grown]:
    """``pairs``: (finished rows, tenants). A server of its own for each; the loop by hand runs beside it."""
    found = []
    for finished, tenants in pairs:
        with bench("postgresql", history_rows=finished, tenants=tenants, history_bytes=_BYTES) as place:
            say(f"  {finished:,} finished rows, {tenants} tenants")
            due_ms, claim_ms = _looked(place, arm, n)
            ours = one(place, ARMS[arm], n, 0, settings, say)
            by_hand = one(place, ARMS["bare"], n, 0, settings, say)
            found.append(
                Grown(
                    finished=finished,
                    tenants=tenants,
                    due_ms=due_ms,
                    claim_ms=claim_ms,
                    ops_per_s=ours.ops_per_s,
                    ratio=ours.ops_per_s / by_hand.ops_per_s,
                    worker_cpu_ms=ours.worker_cpu_ms,
                    database_cpu_ms=ours.database_cpu_ms,
                )
            )
    return found


def _looked(place: Bench, name: str, n: int) -> tuple[float, float]:
    """Median milliseconds of looking for what is due, and of claiming ten of it, with ``n`` waiting."""
    arm = ARMS[name]
    if not isinstance(arm, Opstage):
        raise TypeError(f"{name} is no arm of Opstage's")
    with place.database() as url:
        folder = place.folder / "claims"
        folder.mkdir()
        run = Run(place, url, folder)
        arm.prepare(run)
        arm.fill(run, orders(n, place.tenants))
        loaded = settings_from(arm.env(run))
        store = QueueStore(open_engine(loaded, loaded.database_url))
        dues, claims = [], []
        for _ in range(min(_CLAIMS, n // _BATCH)):
            start = time.perf_counter()
            with store.read() as connection:
                _, found = in_turn(connection, None, _BATCH)
            dues.append(time.perf_counter() - start)
            start = time.perf_counter()
            claimed = _claim(store, [d.id for d in found])
            claims.append(time.perf_counter() - start)
            if len(claimed) != _BATCH:
                raise WrongOutcome(f"{len(claimed)} of {_BATCH} claimed")
        store.close()
    return median(dues) * 1000, median(claims) * 1000


def _claim(store: QueueStore, ids: Sequence[str]) -> list[Operation]:
    claimed, _ = store.transact(lambda unit: claims.claim(unit.connection, ids, new_id(), 60.0)[0])
    return claimed
