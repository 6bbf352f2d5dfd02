"""Idle latency: from the call that hands an operation over to the message of its end at a subscriber."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles

from tests.benchmarks.arms.base import Arm, Run
from tests.benchmarks.servers import Bench
from tests.benchmarks.throughput import WrongOutcome
from tests.support.processes import WorkerProcess

_WARM_UP = 15


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds over all rounds; ``ratio``: p50 to the reference's p50 of the same round, median."""

    arm: str
    label: str
    n: int
    p50: float
    p99: float
    ratio: float
    load: float


def measure(
    bench: Bench,
    arms: Sequence[Arm],
    reference: str,
    *,
    n: int,
    rounds: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Latency]:
    """``n`` operations an arm and round, each begun after the one before has ended."""
    waits: dict[str, list[list[float]]] = {arm.name: [] for arm in arms}
    for number in range(rounds):
        shift = number % len(arms)
        for arm in (*arms[shift:], *arms[:shift]):
            waits[arm.name].append(_one(bench, arm, n, number, settings))
            say(f"  round {number + 1} {arm.name:18} p50 {median(waits[arm.name][-1]):.1f} ms")
    base = [median(of_round) for of_round in waits[reference]]
    return [_latency(arm, waits[arm.name], base) for arm in arms]


def _one(bench: Bench, arm: Arm, n: int, number: int, settings: Mapping[str, str] | None) -> list[float]:
    with bench.database() as url, ExitStack() as stack:
        bench.redis.client().flushall()
        folder = bench.folder / f"latency-{arm.name}-{number}"
        folder.mkdir()
        run = Run(bench, url, folder, settings=settings)
        arm.prepare(run)
        for process in arm.workers(run):
            process.start(wait=isinstance(process, WorkerProcess))
            stack.callback(process.kill_all)
        found = arm.waits_ms(run, n + _WARM_UP)[_WARM_UP:]
        with run.connect() as connection:
            done = arm.count_done(connection)
        if done != n + _WARM_UP:
            raise WrongOutcome(f"{arm.name}: {done} operations in the ledger, not {n + _WARM_UP}")
        return found


def _latency(arm: Arm, rounds: Sequence[Sequence[float]], base: Sequence[float]) -> Latency:
    pooled = [wait for of_round in rounds for wait in of_round]
    ratios = [median(of_round) / reference for of_round, reference in zip(rounds, base, strict=True)]
    p99 = quantiles(pooled, n=100)[98]
    return Latency(arm.name, arm.label, len(pooled), median(pooled), p99, median(ratios), os.getloadavg()[0])
