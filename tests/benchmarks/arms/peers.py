"""Other queues with the same body, set up as their documentation advises, in an environment of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from tests.benchmarks.arms.base import Arm, Run, asked, program
from tests.benchmarks.reference.orders import Order
from tests.support.processes import ROOT, LoggedProcess

PEERS_PYTHON = str(ROOT / ".venv-bench" / "bin" / "python")


class Peer(Arm):
    """``module``: the peer's program. ``together``: one command that starts all workers, else one ``work`` each."""

    def __init__(
        self,
        name: str,
        label: str,
        module: str,
        *,
        together: Sequence[str] = (),
        commit: str = "op",
        python: str = PEERS_PYTHON,
    ) -> None:
        self.name, self.label, self.commit = name, label, commit
        self._module, self._together, self._python = f"tests.benchmarks.peers.{module}", together, python

    def prepare(self, run: Run) -> None:
        program(self._python, self._module, run, "prepare")

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        path = run.folder / "orders"
        path.write_text(
            "".join(json.dumps([o.id, o.brands, o.payload]) + "\n" for o in orders), encoding="utf-8"
        )
        program(self._python, self._module, run, "fill", str(path))

    def workers(self, run: Run) -> list[LoggedProcess]:
        if self._together:
            command = [self._python, "-m", *(part.format(workers=run.workers) for part in self._together)]
            return [LoggedProcess(command, run.environment, run.folder, self.name)]
        return [
            LoggedProcess(
                [self._python, "-m", self._module, "work"],
                {**run.environment, "BENCH_WORKER": str(number)},
                run.folder,
                f"{self.name}-{number}",
            )
            for number in range(run.workers)
        ]

    def waits_ms(self, run: Run, count: int) -> list[float]:
        return asked(self._python, self._module, run, count)


PEERS = (
    Peer(
        "typical",
        "Celery task with the ORM",
        "typical",
        commit="3 each",
        python=sys.executable,
        together=(
            *("celery", "-A", "tests.benchmarks.peers.typical", "worker", "--concurrency", "{workers}"),
            *("--without-gossip", "--without-mingle", "--loglevel", "WARNING"),
        ),
    ),
    Peer("procrastinate", "procrastinate", "procrastinate_queue"),
    Peer("pgqueuer", "pgqueuer, batch 50", "pgqueuer_queue"),
    Peer(
        "dramatiq",
        "dramatiq",
        "dramatiq_queue",
        together=(
            "dramatiq",
            "tests.benchmarks.peers.dramatiq_queue",
            "--processes",
            "{workers}",
            "--threads",
            "8",
        ),
    ),
    Peer("dbos", "DBOS", "dbos_queue", commit="op + steps"),
)
