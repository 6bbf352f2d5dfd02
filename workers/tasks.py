"""The two stable task names. Bodies are three lines: everything else is testable without Celery."""

from __future__ import annotations

from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_process_init

from staging.messaging.celery_dispatcher import EXECUTE_TASK, SWEEP_TASK
from workers.app import app
from workers.runtime import Runtime, runtime, warm_up

_TIME_LIMIT = (SoftTimeLimitExceeded,)


@worker_process_init.connect
def _child_begins(**_: Any) -> None:
    warm_up(_TIME_LIMIT)


def _runtime() -> Runtime:
    return runtime(_TIME_LIMIT)


@app.task(name=EXECUTE_TASK)
def execute(ids: list[str]) -> None:
    """Execute these operations, if they are due, and then whatever else is. ``ids`` are hints."""
    own = _runtime()
    own.dispatcher.arrived()
    own.drain.run([str(i) for i in ids])


@app.task(name=SWEEP_TASK)
def sweep() -> None:
    """One round of the sweeper; beat sends it."""
    _runtime().sweeper.sweep()
