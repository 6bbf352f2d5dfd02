"""Tells workers by a Celery message that rows are due. The message is a hint: losing, doubling or delaying it
is harmless."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from staging.settings import Settings

log = logging.getLogger(__name__)

EXECUTE_TASK = "opstage.execute"
SWEEP_TASK = "opstage.sweep"
_IDS_PER_MESSAGE = 100


def transport_options(settings: Settings, *, producer: bool) -> dict[str, Any]:
    """Broker transport options, the same visibility timeout in every process (RELIABILITY A1).

    Producers wait ``publish_timeout_s`` at most; a worker's own BRPOP must outlast its poll.
    """
    if not settings.broker.startswith(("redis", "rediss")):
        return {}
    options: dict[str, Any] = {
        "visibility_timeout": settings.visibility_timeout_s,
        "socket_connect_timeout": settings.publish_timeout_s if producer else 5.0,
        "socket_timeout": settings.publish_timeout_s if producer else 30.0,
        "health_check_interval": 10,
        "retry_on_timeout": False,
    }
    return options


def make_celery(settings: Settings, *, producer: bool) -> Celery:
    """The Celery app shared by producers and workers: JSON only, no results, one stable task name."""
    app = Celery("opstage", broker=settings.broker)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        task_default_queue=settings.queue_name,
        task_routes={SWEEP_TASK: {"queue": settings.sweep_queue_name}},
        broker_transport_options=transport_options(settings, producer=producer),
        broker_connection_retry_on_startup=True,
        broker_pool_acquire_timeout=settings.publish_timeout_s,
        broker_connection_timeout=settings.publish_timeout_s if producer else 4.0,
        timezone="UTC",
        enable_utc=True,
    )
    return app


class CeleryDispatcher:
    """Announces due rows, many ids in one message, publishing once and without retry."""

    def __init__(self, app: Celery, queue: str) -> None:
        self._app, self._queue = app, queue

    def announce(self, op_ids: Sequence[str]) -> bool:
        """True if the broker took it. False, logged, if not: the sweeper announces due rows again.

        An empty list is a plain wake-up: whoever gets it drains what is due.
        """
        try:
            for start in range(0, max(1, len(op_ids)), _IDS_PER_MESSAGE):
                self._app.send_task(
                    EXECUTE_TASK,
                    args=[list(op_ids[start : start + _IDS_PER_MESSAGE])],
                    queue=self._queue,
                    ignore_result=True,
                    retry=False,
                )
        except (OperationalError, OSError) as error:
            log.warning("broker not reached (%s); the sweeper will announce the rows", type(error).__name__)
            return False
        return True
