"""A long backlog through the same processes: memory of the workers and the cost of finding work, tenth by tenth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import psutil

from staging.bootstrap import open_engine
from staging.storage.due import in_turn
from staging.storage.unit_of_work import QueueStore
from tests.benchmarks.arms import ARMS
from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.opstage import Opstage
from tests.benchmarks.reference.orders import orders
from tests.benchmarks.servers import Bench
from tests.benchmarks.throughput import WrongOutcome
from tests.support.processes import settings_from
from tests.support.waiting import wait_until

_PARTS = 10
_STALLED_S = 60.0
_POLL_S = 0.5
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Tenth:
    """When ``done`` operations had ended: speed since the row before, resident memory of the worker and its children,
    milliseconds to find what is due (median)."""

    done: int
    ops_per_s: float
    memory_mb: float
    due_ms: float


def measure(
    bench: Bench,
    *,
    n: int,
    arm: str = "opstage-handler",
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Tenth]:
    """Work off ``n`` operations and look after each tenth. Raises ``WrongOutcome``."""
    ours = ARMS[arm]
    if not isinstance(ours, Opstage):
        raise TypeError(f"{arm} is no arm of Opstage's")
    found: list[Tenth] = []
    with bench.database() as url, ExitStack() as stack:
        folder = bench.folder / f"endurance-{time.monotonic_ns()}"
        folder.mkdir()
        run = Run(bench, url, folder, settings=settings)
        ours.prepare(run)
        given = orders(n, bench.tenants)
        ours.fill(run, given)
        loaded = settings_from(ours.env(run))
        store = QueueStore(open_engine(loaded, loaded.database_url))
        stack.callback(store.close)
        watch = stack.enter_context(run.connect())
        processes = ours.workers(run)
        for process in processes:
            process.start(wait=False)
            stack.callback(process.kill_all)
        worker = psutil.Process(processes[0].pid)
        before, before_at = 0, time.monotonic()
        for part in range(1, _PARTS + 1):
            wanted = n * part // _PARTS
            wait_until(
                lambda wanted=wanted: ours.count_done(watch) >= wanted,  # type: ignore[misc]
                _STALLED_S + n / 100,
                f"{wanted} of {n} operations are done",
                poll_s=_POLL_S,
            )
            done, now = ours.count_done(watch), time.monotonic()
            speed = (done - before) / (now - before_at)
            found.append(Tenth(done, speed, _memory_mb(worker), _due_ms(store, loaded.claim_batch)))
            before, before_at = done, now
            say(f"  {found[-1]}")
        wait_until(lambda: not ours.waiting(watch), _STALLED_S, "every operation settled", poll_s=_POLL_S)
        if problems := ours.problems(run, watch, [o.id for o in given]):
            raise WrongOutcome("\n".join(problems))
    return found


def _memory_mb(process: psutil.Process) -> float:
    return sum(p.memory_info().rss for p in [process, *process.children(recursive=True)]) / 1e6


def _due_ms(store: QueueStore, limit: int) -> float:
    took = []
    for _ in range(_LOOKS):
        start = time.perf_counter()
        with store.read() as connection:
            in_turn(connection, None, limit)
        took.append(time.perf_counter() - start)
    return median(took) * 1000
