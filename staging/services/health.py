"""Can what we need be reached? Each question is bounded by the connection's own time limits."""

from __future__ import annotations

from collections.abc import Callable

from staging.domain.ports import Notifier
from staging.storage import backlog
from staging.storage.backlog import Backlog
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore


class HealthService:
    """``broker``: asks the broker, True where it answers."""

    def __init__(self, store: QueueStore, notifier: Notifier, broker: Callable[[], bool]) -> None:
        self._store, self._notifier, self._broker = store, notifier, broker

    def ready(self) -> dict[str, bool]:
        """What a request may need: name → whether it answers."""
        return {
            "database": self._database(),
            "redis": self._notifier.publish([]).reached,
            "broker": self._broker(),
        }

    def pending(self) -> dict[int, int]:
        """Pending code → number of operations, of all tenants."""
        with self._store.read() as connection:
            return backlog.pending(connection)

    def backlog(self) -> Backlog:
        """Ages that say whether rows move on, of all tenants."""
        with self._store.read() as connection:
            return backlog.backlog(connection)

    def _database(self) -> bool:
        try:
            with self._store.read() as connection:
                return backlog.answers(connection)
        except Exception as error:
            if is_db_error(error):
                return False
            raise
