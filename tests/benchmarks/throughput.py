"""Throughput of a backlog: interleaved rounds, each arm beside its reference, every outcome checked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median

from sqlalchemy import Connection

from tests.benchmarks.arms.base import Arm, Run
from tests.benchmarks.cpu import CpuSampler
from tests.benchmarks.reference.orders import orders
from tests.benchmarks.servers import Bench
from tests.support.processes import LoggedProcess
from tests.support.waiting import wait_until

_POLL_S = 0.3
_EDGE = 0.05  # completions before and after these ranks are start-up and tail


class WrongOutcome(Exception):
    """The run did not do exactly what it was given: there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. CPU in milliseconds an operation; ``neighbours``: cores that others kept busy meanwhile."""

    arm: str
    round: int
    n: int
    ops_per_s: float
    worker_cpu_ms: float
    database_cpu_ms: float
    redis_cpu_ms: float
    neighbours: float
    load: float
    ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Medians over rounds; ``ratio`` to the reference of the same round."""

    arm: str
    label: str
    commit: str
    n: int
    rounds: int
    ops_per_s: float
    low: float
    high: float
    ratio: float
    worker_cpu_ms: float
    database_cpu_ms: float
    neighbours: float


def measure(
    bench: Bench,
    arms: Sequence[Arm],
    reference: str,
    *,
    n: int,
    rounds: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
    after_round: Callable[[list[Measured], list[Summary]], None] = lambda runs, rows: None,
) -> tuple[list[Measured], list[Summary]]:
    """Each round runs every arm once, in turn, beginning one further on each time. Raises ``WrongOutcome``.

    ``after_round`` gets what there is so far: a long comparison that is broken off was not for nothing.
    """
    results: list[Measured] = []
    for number in range(rounds):
        shift = number % len(arms)
        of_round = [one(bench, arm, n, number, settings, say) for arm in (*arms[shift:], *arms[:shift])]
        base = next(m.ops_per_s for m in of_round if m.arm == reference)
        results += [replace(m, ratio=m.ops_per_s / base) for m in of_round]
        after_round(results, summaries(arms, results))
    return results, summaries(arms, results)


def summaries(arms: Sequence[Arm], results: Sequence[Measured]) -> list[Summary]:
    """Medians over the rounds of each arm."""
    return [_summary(arm, [m for m in results if m.arm == arm.name]) for arm in arms]


def one(
    bench: Bench,
    arm: Arm,
    n: int,
    number: int,
    settings: Mapping[str, str] | None,
    say: Callable[[str], None],
    *,
    stalled_s: float = 30.0,
) -> Measured:
    """One run of one arm on a database of its own."""
    with bench.database() as url:
        bench.redis.client().flushall()
        folder = bench.folder / f"{arm.name}-{number}-{time.monotonic_ns()}"
        folder.mkdir()
        run = Run(bench, url, folder, settings=settings)
        arm.prepare(run)
        given = orders(n, bench.tenants)
        arm.fill(run, given)
        problem, measured = "", None
        try:
            measured = _watched(run, arm, n, number, stalled_s)
        except WrongOutcome as error:
            problem = str(error)
        with run.connect() as connection:
            problems = arm.problems(run, connection, [o.id for o in given])
        if problems or measured is None:
            raise WrongOutcome("\n".join([f"{arm.name}:", *problems, problem]))
    say(
        f"  round {number + 1} {arm.name:18} {measured.ops_per_s:7.0f} op/s  worker {measured.worker_cpu_ms:.2f}"
        f" + database {measured.database_cpu_ms:.2f} ms CPU/op  (neighbours {measured.neighbours:.1f} cores,"
        f" load {measured.load:.1f})"
    )
    return measured


def _watched(run: Run, arm: Arm, n: int, number: int, stalled_s: float) -> Measured:
    with ExitStack() as stack:
        watch = stack.enter_context(run.connect())
        processes: list[LoggedProcess] = []
        for process in arm.workers(run):
            processes.append(process.start(wait=False))
            stack.callback(process.kill_all)  # nothing is left to finish once the outcome is in
        pids = {
            "workers": [p.pid for p in processes],
            "database": [run.bench.server_pid] if run.bench.server_pid else [],
            "redis": [run.bench.redis.pid],
            "own": [os.getpid()],
        }
        with CpuSampler(pids) as sampler:
            _await_all(arm, watch, processes, n, stalled_s)
            wait_until(
                lambda: not arm.waiting(watch),
                stalled_s,
                f"{arm.name}: every operation settled",
                poll_s=0.1,
            )
        times = arm.completions(watch)
    start, end = times[int(len(times) * _EDGE)], times[int(len(times) * (1 - _EDGE)) - 1]
    counted = int(len(times) * (1 - _EDGE)) - 1 - int(len(times) * _EDGE)
    cpu = sampler.between(start, end)
    ms = 1000 / counted
    own_tree = cpu["own"]  # our children's children included: workers, database and redis are among them
    neighbours = max(0.0, cpu["machine"] - own_tree) / (end - start)
    return Measured(
        arm=arm.name,
        round=number,
        n=n,
        ops_per_s=counted / (end - start),
        worker_cpu_ms=cpu["workers"] * ms,
        database_cpu_ms=cpu["database"] * ms,
        redis_cpu_ms=cpu["redis"] * ms,
        neighbours=neighbours,
        load=os.getloadavg()[0],
    )


def _await_all(
    arm: Arm, watch: Connection, processes: Sequence[LoggedProcess], n: int, stalled_s: float
) -> None:
    """Until ``n`` operations are in the ledger. AssertionError, with logs, where none came for ``stalled_s``."""
    count, progress = 0, time.monotonic()
    while count < n:
        time.sleep(_POLL_S)
        before, count = count, arm.count_done(watch)
        if count > before:
            progress = time.monotonic()
        ended = [p.name for p in processes if not p.alive()]
        if ended or time.monotonic() - progress > stalled_s:
            logs = "\n".join(f"{p.name}: {p.log()[-2000:]}" for p in processes)
            raise WrongOutcome(f"{count} of {n} done, then nothing (ended: {ended})\n{logs}")


def _summary(arm: Arm, runs: Sequence[Measured]) -> Summary:
    speeds = [m.ops_per_s for m in runs]
    return Summary(
        arm=arm.name,
        label=arm.label,
        commit=arm.commit,
        n=runs[0].n,
        rounds=len(runs),
        ops_per_s=median(speeds),
        low=min(speeds),
        high=max(speeds),
        ratio=median(m.ratio for m in runs),
        worker_cpu_ms=median(m.worker_cpu_ms for m in runs),
        database_cpu_ms=median(m.database_cpu_ms for m in runs),
        neighbours=median(m.neighbours for m in runs),
    )
