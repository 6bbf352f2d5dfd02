"""What a listener has not heard yet, from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from staging.domain.cursor import Cursor, load_cursor
from staging.domain.identity import Actor, ActorKind
from staging.domain.operation import Told
from staging.storage import feed
from staging.storage.feed import Audience, Moved
from staging.storage.unit_of_work import QueueStore


class FeedService:
    def __init__(self, store: QueueStore) -> None:
        self._store = store

    def cursor(self, actor: Actor, last_event_id: str | None) -> Cursor:
        """Where the client left off; now, where it did not say or said something that is no cursor."""
        resumed = load_cursor(last_event_id) if last_event_id else None
        if resumed is not None:
            return resumed
        with self._store.read() as connection:
            return feed.start(connection, _audience(actor))

    def since(self, actor: Actor, cursor: Cursor) -> list[Told]:
        """The next events after ``cursor``, which stays as it is; empty where there are none."""
        with self._store.read() as connection:
            return feed.since(connection, _audience(actor), cursor)

    def of_operations(self, actor: Actor, cursor: Cursor, op_ids: Sequence[str]) -> list[Told]:
        """The same of those ``op_ids`` that are the actor's to hear of: cheap, whatever else is going on."""
        with self._store.read() as connection:
            return feed.of_operations(connection, _audience(actor), cursor, op_ids)

    def of_operation(self, actor: Actor, op_id: str, after: int, *, archived: bool = False) -> list[Told]:
        """Events above ``after`` of an operation the caller has been found to be allowed to see; ``archived``: it has
        gone to the archive, where nothing happens any more."""
        with self._store.read() as connection:
            told = feed.of_operation(connection, op_id, after, archived=archived)
        return [t for t in told if t.tenant == actor.tenant]

    def moved(self, horizon: datetime | None) -> tuple[list[Moved], datetime]:
        """For whoever wakes listeners: all that moved since ``horizon`` (None: in the last 90 s), whoever's it is, and
        the horizon for the next call, which tells some of it again."""
        with self._store.read() as connection:
            following = feed.horizon_now(connection)
            return list(feed.moved_since(connection, horizon or following)), following


def _audience(actor: Actor) -> Audience:
    return Audience(actor.tenant, None if actor.kind is ActorKind.OPERATOR else actor.user_id)
