"""Can what we need be reached? Each question is bounded by the connection's own time limits."""

from __future__ import annotations

from staging.domain.ports import Notifier
from staging.storage import statistics
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore


class HealthService:
    def __init__(self, store: QueueStore, notifier: Notifier) -> None:
        self._store, self._notifier = store, notifier

    def database(self) -> bool:
        """True if the queue's database answers a query."""
        try:
            with self._store.read() as connection:
                return statistics.answers(connection)
        except Exception as error:
            if is_db_error(error):
                return False
            raise

    def redis(self) -> bool:
        """True if the pub/sub server takes commands."""
        return self._notifier.publish([])
