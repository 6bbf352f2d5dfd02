"""What a listener has not heard yet, from the journal."""

from __future__ import annotations

from staging.domain.identity import Actor, ActorKind
from staging.domain.operation import Told
from staging.storage import feed
from staging.storage.feed import Cursor
from staging.storage.unit_of_work import QueueStore


class FeedService:
    def __init__(self, store: QueueStore) -> None:
        self._store = store

    def cursor(self, actor: Actor, last_event_id: str | None) -> Cursor:
        """Where the client left off; now, where it did not say or said something that is no cursor."""
        resumed = feed.load_cursor(last_event_id) if last_event_id else None
        if resumed is not None:
            return resumed
        with self._store.read() as connection:
            return feed.start(connection, actor.tenant, _scope(actor))

    def since(self, actor: Actor, cursor: Cursor) -> list[Told]:
        """The next page after ``cursor``, which stays as it is; see ``advance``."""
        with self._store.read() as connection:
            return feed.since(connection, actor.tenant, _scope(actor), cursor)

    def of_operation(self, actor: Actor, op_id: str, after: int) -> list[Told]:
        """Events above ``after`` of an operation the caller has been found to be allowed to see."""
        with self._store.read() as connection:
            return [t for t in feed.of_operation(connection, op_id, after) if t.tenant == actor.tenant]

    @staticmethod
    def advance(cursor: Cursor, told: Told) -> None:
        feed.advance(cursor, [told])


def _scope(actor: Actor) -> str | None:
    return None if actor.kind is ActorKind.OPERATOR else actor.user_id
