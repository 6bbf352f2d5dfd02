"""Tells workers by a Celery message that rows are due. The message is a hint: losing, doubling or delaying it
is harmless."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from staging.messaging.wake_flag import WakeFlag
from staging.settings import Settings

log = logging.getLogger(__name__)

EXECUTE_TASK = "opstage.execute"
SWEEP_TASK = "opstage.sweep"
_IDS_PER_MESSAGE = 100
_NO_SUCH_QUEUE = "404"
_PROBE_S = 2.0  # for those who only ask how things are


def transport_options(settings: Settings, *, producer: bool) -> dict[str, Any]:
    """Broker transport options, the same visibility timeout in every process (RELIABILITY A1).

    Producers wait ``publish_timeout_s`` at most; a worker's own BRPOP must outlast its poll.
    """
    if not settings.broker_is_redis:
        return {}
    options: dict[str, Any] = {
        "visibility_timeout": settings.visibility_timeout_s,
        "socket_connect_timeout": settings.publish_timeout_s if producer else 5.0,
        "socket_timeout": settings.publish_timeout_s if producer else 30.0,
        "health_check_interval": 10,
        "retry_on_timeout": False,
    }
    if settings.broker_sentinel_master:
        options["master_name"] = settings.broker_sentinel_master
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
        task_default_queue_type=settings.broker_queue_type,
        task_create_missing_queue_type=settings.broker_queue_type,
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
    """Tells a worker that rows are due: one message at a time, published once and without retry."""

    def __init__(self, app: Celery, queue: str, flag: WakeFlag) -> None:
        self._app, self._queue, self._flag = app, queue, flag

    def announce(self, op_ids: Sequence[str], *, raised: bool | None = None) -> bool:
        """True if the broker took it, or a message is on its way: whoever gets that one drains what is due.

        False, logged, if not: the sweeper announces due rows again. ``op_ids`` are what to look at first; an empty list
        is a plain wake-up.
        """
        if not (self._flag.raise_() if raised is None else raised):
            return True
        try:
            self._app.send_task(
                EXECUTE_TASK,
                args=[list(op_ids[:_IDS_PER_MESSAGE])],
                queue=self._queue,
                ignore_result=True,
                retry=False,
            )
        except (OperationalError, OSError) as error:
            self._flag.lower()
            log.warning("broker not reached (%s); the sweeper will announce the rows", type(error).__name__)
            return False
        return True

    def arrived(self) -> None:
        self._flag.lower()


def broker_answers(settings: Settings) -> bool:
    """True if the broker lets us in within a few seconds."""
    app = make_celery(settings, producer=True)
    with app.connection_for_write(connect_timeout=_PROBE_S) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0)
        except (OperationalError, OSError, *connection.connection_errors) as error:
            log.warning("broker not reached (%s)", type(error).__name__)
            return False
    return True


@dataclass(frozen=True, slots=True)
class AnsweringWorker:
    """A worker that answered just now, of whatever application uses this broker; None: left at Celery's default."""

    name: str
    queue: str
    visibility_timeout_s: float | None
    hard_time_limit_s: float | None


def queue_depths(settings: Settings) -> dict[str, int]:
    """Messages waiting in each of the two queues; 0 for one nobody has used yet.

    Raises OperationalError, OSError or the transport's own error where the broker cannot be reached in a few seconds.
    """
    depths: dict[str, int] = {}
    app = make_celery(settings, producer=True)
    with app.connection_for_write(connect_timeout=_PROBE_S) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0)
        for name in (settings.queue_name, settings.sweep_queue_name):
            channel = connection.channel()  # one each: AMQP closes it with the error
            try:
                depths[name] = int(channel.queue_declare(queue=name, passive=True).message_count)
            except connection.channel_errors as error:
                if str(getattr(error, "reply_code", "")) != _NO_SUCH_QUEUE:
                    raise
                depths[name] = 0
    return depths


def answering_workers(settings: Settings, timeout_s: float = 1.0) -> list[AnsweringWorker]:
    """Workers that answer within ``timeout_s``. Silence is not death: a busy one may not answer (RELIABILITY A26)."""
    app = make_celery(settings, producer=False)
    if app.conf.broker_transport_options:
        app.conf.broker_transport_options |= {"socket_connect_timeout": _PROBE_S, "socket_timeout": _PROBE_S}
    app.conf.broker_connection_timeout = _PROBE_S
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0)
        replies = app.control.inspect(timeout=timeout_s, connection=connection).conf() or {}
    return [_answer(name, conf) for name, conf in sorted(replies.items()) if isinstance(conf, dict)]


def _answer(name: str, conf: dict[str, Any]) -> AnsweringWorker:
    options = conf.get("broker_transport_options") or {}
    return AnsweringWorker(
        name=name,
        queue=str(conf.get("task_default_queue") or ""),
        visibility_timeout_s=options.get("visibility_timeout"),
        hard_time_limit_s=conf.get("task_time_limit"),
    )
