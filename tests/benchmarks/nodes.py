"""More hosts against one database: what each further one adds, until the database or the machine is busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.opstage import Opstage
from tests.benchmarks.servers import Bench
from tests.benchmarks.throughput import Measured, one
from tests.support.hosts import HostWorker
from tests.support.processes import BeatProcess, LoggedProcess


class Hosts(Opstage):
    """``count`` hosts, one worker process on each."""

    def __init__(self, count: int) -> None:
        super().__init__(f"hosts-{count}", f"Opstage, {count} hosts", "erp.po.place")
        self._count = count

    def workers(self, run: Run) -> list[LoggedProcess]:
        env = self.env(run)
        hosts = [HostWorker(env, run.folder, f"node-{n}") for n in range(1, self._count + 1)]
        return [*hosts, BeatProcess(env, run.folder, name=f"{self.name}-beat")]


@dataclass(frozen=True, slots=True)
class Scaled:
    """Medians of ``rounds``; ``ratio``: to one host in the same round."""

    hosts: int
    rounds: int
    ops_per_s: float
    ratio: float
    worker_cpu_ms: float
    database_cpu_ms: float


def measure(
    bench: Bench,
    counts: Sequence[int],
    *,
    n: int,
    rounds: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Scaled]:
    """The same backlog with each number of hosts in turn; the first of ``counts`` is what others are compared to."""
    runs = [
        [one(bench, Hosts(count), n, number, settings, say) for count in counts] for number in range(rounds)
    ]
    return [_scaled(count, [(of[at], of[0]) for of in runs]) for at, count in enumerate(counts)]


def _scaled(hosts: int, pairs: Sequence[tuple[Measured, Measured]]) -> Scaled:
    return Scaled(
        hosts=hosts,
        rounds=len(pairs),
        ops_per_s=median(run.ops_per_s for run, _ in pairs),
        ratio=median(run.ops_per_s / first.ops_per_s for run, first in pairs),
        worker_cpu_ms=median(run.worker_cpu_ms for run, _ in pairs),
        database_cpu_ms=median(run.database_cpu_ms for run, _ in pairs),
    )
