"""More hosts against one database: what each further one adds, until the database or the machine is busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.opstage import Opstage
from tests.benchmarks.servers import Bench
from tests.benchmarks.throughput import one
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
    """``ratio``: to one host."""

    hosts: int
    ops_per_s: float
    ratio: float
    worker_cpu_ms: float
    database_cpu_ms: float


def measure(
    bench: Bench,
    counts: Sequence[int],
    *,
    n: int,
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> list[Scaled]:
    """The same backlog with each number of hosts; the first of ``counts`` is what the others are compared to."""
    runs = [one(bench, Hosts(count), n, 0, settings, say) for count in counts]
    return [
        Scaled(
            count, run.ops_per_s, run.ops_per_s / runs[0].ops_per_s, run.worker_cpu_ms, run.database_cpu_ms
        )
        for count, run in zip(counts, runs, strict=True)
    ]
