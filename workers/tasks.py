"""The two stable task names. Bodies are three lines: everything else is testable without Celery."""

from __future__ import annotations

from celery.exceptions import SoftTimeLimitExceeded

from staging.messaging.celery_dispatcher import EXECUTE_TASK, SWEEP_TASK
from workers.app import app
from workers.runtime import Runtime, runtime


def _runtime() -> Runtime:
    return runtime((SoftTimeLimitExceeded,))


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
