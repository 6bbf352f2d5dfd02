"""What queue and archive hold, by plain SQL: for tests of moving one into the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from staging.services.archive import Archived, ArchiveService
from staging.storage.dialect import db_now_plus
from tests.support.world import World

DAY_S = 86_400


def archive(world: World, days: float = 30, batch: int = 500, **options: Any) -> Archived:
    return ArchiveService(world.store).run(days, batch, **options)


def ended(world: World, count: int = 1, *, days_ago: float = 31, **changes: Any) -> list[str]:
    """Operations that were executed that long ago."""
    ids = world.confirm(*(world.row(**changes) for _ in range(count)))
    world.settle(*ids)
    age(world, ids, days_ago)
    return ids


def age(world: World, ids: Sequence[str], days_ago: float) -> None:
    world.set(ids, tExecutedDate=db_now_plus(-days_ago * DAY_S))


def rows(world: World, table: str, key: str = "sId") -> list[dict[str, Any]]:
    """All rows as the driver gives them, ordered by ``key`` (and seq)."""
    with world.queue.connect() as connection:
        found = [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
    return sorted(found, key=lambda row: (row[key], row.get("iSeq") or 0))


def live(world: World) -> set[str]:
    return {row["sId"] for row in rows(world, "ai_op_queue")}


def archived(world: World) -> set[str]:
    return {row["sId"] for row in rows(world, "ai_op_queue_archive")}


def both(world: World) -> tuple[list[str], list[tuple[str, int]]]:
    """Ids and (id, seq) of events in queue and archive together: what no archiving may change."""
    ids = [row["sId"] for table in ("ai_op_queue", "ai_op_queue_archive") for row in rows(world, table)]
    events = [
        (row["sOpId"], row["iSeq"])
        for table in ("ai_op_event", "ai_op_event_archive")
        for row in rows(world, table, "sOpId")
    ]
    return sorted(ids), sorted(events)
