"""A worker process that runs one batch and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.forked import Forked
from tests.support.processes import settings_from
from workers.runtime import build_runtime


class RunOnce(Forked):
    """Executes ``ids`` once in a process of its own; log and "claimed N" go to ``log_path``."""

    def __init__(self, env: Mapping[str, str], ids: Sequence[str], log_path: Path) -> None:
        super().__init__(_run, env, log_path, dict(env), list(ids))


def _run(env: dict[str, str], ids: list[str]) -> None:
    claimed = build_runtime(settings_from(env)).executor.run_batch(ids)
    print(f"claimed {claimed}")  # noqa: T201 - into the log
