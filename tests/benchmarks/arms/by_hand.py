"""Hand-written loops over one table: what the database itself allows, and what everybody is compared with."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sqlalchemy import text

from tests.benchmarks.arms.base import Arm, Run, asked
from tests.benchmarks.reference.orders import SUBSIDIARY, Order
from tests.support.processes import LoggedProcess

_INSERT = text(
    "INSERT INTO bench_queue (id, brands, subsidiary, shard, payload)"
    " VALUES (:id, :brands, :subsidiary, :shard, :payload)"
)


class ByHand(Arm):
    """``module``: the loop's program, one process of it per worker."""

    still_open = "SELECT count(*) FROM bench_queue WHERE status <> 'done'"

    def __init__(
        self, name: str, label: str, module: str, *, commit: str = "op", engine: str = "postgresql"
    ) -> None:
        self.name, self.label, self.commit = name, label, commit
        self._module, self.engines = module, (engine,)

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        with run.connect() as connection:
            rows = [
                {
                    "id": o.id,
                    "brands": o.brands,
                    "subsidiary": SUBSIDIARY,
                    "shard": o.shard,
                    "payload": o.payload,
                }
                for o in orders
            ]
            connection.execute(_INSERT, rows)
            connection.commit()

    def workers(self, run: Run) -> list[LoggedProcess]:
        return [
            LoggedProcess(
                [sys.executable, "-m", self._module],
                {**run.environment, "BENCH_WORKER": str(number)},
                run.folder,
                f"{self.name}-{number}",
            )
            for number in range(run.workers)
        ]

    def waits_ms(self, run: Run, count: int) -> list[float]:
        return asked(sys.executable, "tests.benchmarks.loops.client", run, count)
