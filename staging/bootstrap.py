"""Composition root: the one place that puts the parts together and loads the ERP adapter by its dotted path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, cast
from urllib.parse import urlsplit

from staging.domain.ports import Dispatcher, ErpAdapter
from staging.messaging.celery_dispatcher import CeleryDispatcher, broker_answers, make_celery
from staging.messaging.redis_notifier import RedisNotifier
from staging.messaging.wake_flag import WakeFlag
from staging.services.confirm import ConfirmService
from staging.services.control import ControlService
from staging.services.feed import FeedService
from staging.services.health import HealthService
from staging.services.inspect import InspectService
from staging.services.prepare import PrepareService
from staging.services.restage import RestageService
from staging.services.revert import RevertService
from staging.services.search import SearchService
from staging.services.tell import Teller
from staging.settings import Settings, get_settings
from staging.storage.engine import make_engine
from staging.storage.preparations import RedisPreparationStore
from staging.storage.unit_of_work import QueueStore


def utc_now() -> datetime:
    return datetime.now(UTC)


def open_engine(settings: Settings, url: str, application_name: str = "opstage") -> Any:
    """An SQLAlchemy Engine with the limits of ``settings``; opaque outside storage and the adapters."""
    return make_engine(
        url,
        pool_size=settings.pool_size,
        statement_timeout_s=settings.statement_timeout_s,
        lock_timeout_s=settings.lock_timeout_s,
        application_name=application_name,
    )


def import_adapter(settings: Settings) -> Callable[[Settings, Any], ErpAdapter]:
    """The factory that ``OPSTAGE_ERP_ADAPTER`` (``package.module:factory``) names."""
    module, _, factory = settings.erp_adapter.partition(":")
    return cast(
        Callable[[Settings, Any], ErpAdapter], getattr(import_module(module), factory or "build_adapter")
    )


def load_adapter(settings: Settings, engine: Any) -> ErpAdapter:
    """The adapter on the ERP's ``engine``."""
    return import_adapter(settings)(settings, engine)


@dataclass(frozen=True)
class Databases:
    """The queue's store and the ERP; one engine serves both where they share a database."""

    store: QueueStore
    adapter: ErpAdapter

    def close(self) -> None:
        self.adapter.close()
        self.store.close()


def open_databases(settings: Settings, application_name: str = "opstage") -> Databases:
    """Engines are lazy: nothing connects before the first use, so this is safe right after a fork."""
    queue = open_engine(settings, settings.database_url, application_name)
    erp = queue if settings.shared_database else open_engine(settings, settings.erp_url, application_name)
    return Databases(QueueStore(queue), load_adapter(settings, erp))


def _wake_flag(settings: Settings) -> WakeFlag:
    return WakeFlag(
        settings.redis_url.get_secret_value(),
        settings.queue_name,
        settings.announce_after_s,
        settings.publish_timeout_s,
    )


def open_dispatcher(settings: Settings) -> Dispatcher:
    app = make_celery(settings, producer=True)
    return CeleryDispatcher(app, settings.queue_name, _wake_flag(settings))


def open_notifier(settings: Settings) -> RedisNotifier:
    redis_url, timeout_s = settings.redis_url.get_secret_value(), settings.publish_timeout_s
    return RedisNotifier(redis_url, timeout_s, _wake_flag(settings))


def open_teller(settings: Settings, dispatcher: Dispatcher) -> Teller:
    redis_url = settings.redis_url.get_secret_value()
    notifier = open_notifier(settings)
    same = urlsplit(redis_url)[1] == urlsplit(settings.broker)[1]
    return Teller(notifier, dispatcher, same_server=same)


@dataclass(frozen=True)
class Services:
    """The use cases, ready to call; every door goes through these."""

    prepare: PrepareService
    confirm: ConfirmService
    control: ControlService
    inspect: InspectService
    revert: RevertService
    restage: RestageService
    search: SearchService
    feed: FeedService
    health: HealthService
    settings: Settings
    databases: Databases


@contextmanager
def open_services(settings: Settings | None = None) -> Iterator[Services]:
    """The services on ``settings`` (default: the environment's); closes connections on leaving."""
    settings = settings or get_settings()
    databases = open_databases(settings)
    store, adapter, teller = (
        databases.store,
        databases.adapter,
        open_teller(settings, open_dispatcher(settings)),
    )
    preparations = RedisPreparationStore(settings.redis_url.get_secret_value(), settings.publish_timeout_s)
    prepare = PrepareService(adapter, preparations, settings, utc_now)
    inspect = InspectService(store, adapter)
    try:
        yield Services(
            prepare=prepare,
            confirm=ConfirmService(store, prepare, adapter, teller, settings, utc_now),
            control=ControlService(store, adapter, teller),
            inspect=inspect,
            revert=RevertService(inspect, prepare, adapter),
            restage=RestageService(inspect, prepare, adapter, settings),
            search=SearchService(store, adapter),
            feed=FeedService(store),
            health=HealthService(store, open_notifier(settings), lambda: broker_answers(settings)),
            settings=settings,
            databases=databases,
        )
    finally:
        preparations.close()
        databases.close()
