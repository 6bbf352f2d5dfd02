"""The parts one worker process needs, made after fork and once per process."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from functools import lru_cache

from staging.bootstrap import open_databases, open_dispatcher, open_teller
from staging.domain.errors import Transient
from staging.domain.ports import Dispatcher
from staging.settings import Settings, get_settings
from staging.storage.dberrors import is_db_error
from workers.drain import Drain
from workers.executor import Executor
from workers.reconciler import Reconciler
from workers.stopping import stopping
from workers.sweeper import Sweeper

log = logging.getLogger(__name__)
_MAKING = threading.Lock()


@dataclass(frozen=True)
class Runtime:
    dispatcher: Dispatcher
    executor: Executor
    drain: Drain
    sweeper: Sweeper


def build_runtime(settings: Settings, time_limit: tuple[type[BaseException], ...] = ()) -> Runtime:
    """``time_limit``: the pool's soft-limit exceptions."""
    databases = open_databases(settings, "opstage-worker")
    store, adapter = databases.store, databases.adapter
    dispatcher = open_dispatcher(settings)
    teller = open_teller(settings, dispatcher)
    reconciler = Reconciler(store, adapter, teller, settings)
    executor = Executor(store, adapter, teller, settings, reconciler, time_limit)

    def wake() -> None:
        dispatcher.announce([])

    return Runtime(
        dispatcher,
        executor,
        Drain(executor, store, settings, wake, stopping),
        Sweeper(store, reconciler, teller, dispatcher, settings),
    )


@lru_cache(maxsize=1)
def _of_process(pid: int, time_limit: tuple[type[BaseException], ...]) -> Runtime:
    return build_runtime(get_settings(), time_limit)


def runtime(time_limit: tuple[type[BaseException], ...] = ()) -> Runtime:
    """This process's runtime. Keyed by pid: a forked child never uses its parent's connections (RELIABILITY A28)."""
    with _MAKING:
        return _of_process(os.getpid(), time_limit)


def warm_up(time_limit: tuple[type[BaseException], ...] = ()) -> None:
    """Make this process's runtime and connect it, in a thread: whoever is executed first does not wait for that, and a
    database that does not answer keeps no process from starting."""

    def first_look() -> None:
        try:
            runtime(time_limit).drain.look()
        except Exception as error:
            if not isinstance(error, Transient) and not is_db_error(error):
                raise
            log.warning("database not reached at start (%s); the first task connects", type(error).__name__)

    threading.Thread(target=first_look, name="warm-up", daemon=True).start()
