"""The Celery worker application: ``celery -A workers.app:app worker``.

Early acknowledgement and no prefetch: correctness rests on the row, its lease and the sweeper, not on the broker
(RELIABILITY, "Design consequences").
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery
from celery.exceptions import WorkerLostError
from celery.signals import task_failure, worker_init, worker_shutting_down
from kombu.exceptions import OperationalError

from staging.bootstrap import import_adapter
from staging.messaging.celery_dispatcher import SWEEP_TASK, make_celery, transport_options
from staging.settings import Settings, get_settings
from workers.stopping import set_stopping

log = logging.getLogger(__name__)


@worker_init.connect
def _begin(**_: Any) -> None:
    set_stopping(False)
    # Before the fork, so that no child spends a second on it at its first task.
    import_adapter(get_settings())


@worker_shutting_down.connect
def _told_to_stop(**_: Any) -> None:
    set_stopping(True)


@task_failure.connect
def _child_died(exception: object = None, **_: Any) -> None:
    """In the main process, when a child died under a task: what it held is looked after now, not with the next beat."""
    if isinstance(exception, WorkerLostError):
        bounded = transport_options(get_settings(), producer=True)  # this process may not hang on the broker
        try:
            with app.connection_for_write(transport_options=bounded) as connection:
                app.send_task(SWEEP_TASK, connection=connection, ignore_result=True, retry=False)
        except (OperationalError, OSError) as error:
            log.warning("broker not reached (%s); the next sweep looks after the dead", type(error).__name__)


def make_app(settings: Settings) -> Celery:
    app = make_celery(settings, producer=False)
    app.conf.update(
        imports=["workers.tasks"],
        task_queues=None,
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=settings.broker_is_redis,
        worker_concurrency=settings.worker_concurrency,
        worker_max_tasks_per_child=5000,
        worker_send_task_events=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        task_soft_time_limit=settings.soft_time_limit_s,
        task_time_limit=settings.hard_time_limit_s,
        beat_schedule={"sweep": {"task": SWEEP_TASK, "schedule": settings.sweep_interval_s}},
        beat_schedule_filename=str(settings.data_dir / "beat-schedule"),
        beat_max_loop_interval=min(5.0, settings.sweep_interval_s),
    )
    return app


app = make_app(get_settings())
