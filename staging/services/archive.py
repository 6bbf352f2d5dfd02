"""Moves what ended long ago out of the queue, beside running workers, a bounded batch at a time."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind, Tenant
from staging.storage import archiving, audit
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore, UnitOfWork

log = logging.getLogger(__name__)
_DAY_S = 86_400.0
_LOOK = 1000  # rows looked at in one query, at least
_LONGEST_PAUSE_S = 1.0
# A chain of its own: tenants' confirms and executions do not wait for its head.
_ACTOR = Actor(Tenant("", ""), f"archive@{socket.gethostname()[:100]}", ActorKind.SYSTEM)


@dataclass
class Archived:
    """``rows`` and ``events`` moved (a dry run: ``rows`` that would be); ``batches`` committed; ``left``: ids of rows
    that the archive could not take, each told in the log."""

    rows: int = 0
    events: int = 0
    batches: int = 0
    left: list[str] = field(default_factory=list)


class ArchiveService:
    """For whoever runs the database: it knows no tenant and asks for no credential."""

    def __init__(self, store: QueueStore) -> None:
        self._store = store

    def run(
        self,
        older_than_days: float,
        batch: int,
        *,
        dry_run: bool = False,
        progress: Callable[[Archived], None] = lambda _: None,
    ) -> Archived:
        """Archive what ended more than ``older_than_days`` ago, ``batch`` rows in one transaction; ``progress`` is told
        after each. May be killed at any moment and run again, also several at once.

        Raises state_conflict where foreign keys of other tables point at the queue, and unavailable.
        """
        older_than_s = older_than_days * _DAY_S
        with self._store.read() as connection:
            extra = archiving.extra_columns(connection)
            referring = archiving.referring_tables(connection)
        if referring:
            raise _referred_to(referring)
        done = Archived()
        after: str | None = ""
        while after is not None:
            with self._store.read() as connection:
                after, ids = archiving.window(connection, after, max(batch, _LOOK), older_than_s)
            if dry_run:
                done.rows += len(ids)
                continue
            for start in range(0, len(ids), batch):
                began = time.monotonic()
                self._batch(done, ids[start : start + batch], older_than_s, extra)
                progress(done)
                # At most half of the time is ours: SQLite has one writer, and elsewhere others want the disk as well.
                time.sleep(min(time.monotonic() - began, _LONGEST_PAUSE_S))
        return done

    def _batch(self, done: Archived, ids: Sequence[str], older_than_s: float, extra: Sequence[str]) -> None:
        def work(unit: UnitOfWork) -> archiving.Moved:
            moved = archiving.move(unit.connection, ids, older_than_s, extra)
            if moved.ids:
                by_tenant = {audit.chain_of(tenant): rows for tenant, rows in moved.by_tenant.items()}
                detail = {"operations": len(moved.ids), "byTenant": by_tenant}
                audit.append(unit.connection, [audit.AuditEntry(_ACTOR, "archive", detail=detail)])
            return moved

        try:
            moved, _ = self._store.transact(work)
        except Exception as error:
            if not is_db_error(error):
                raise
            if len(ids) > 1:  # which of them is it?
                for op_id in ids:
                    self._batch(done, [op_id], older_than_s, extra)
                return
            log.warning("operation %s stays in the queue: the archive cannot take it", ids[0], exc_info=error)
            done.left.append(ids[0])
            return
        done.rows += len(moved.ids)
        done.events += moved.events
        done.batches += bool(moved.ids)


def _referred_to(tables: Sequence[str]) -> Refused:
    names = ", ".join(tables)
    text = {
        "zh": f"有外键指向 ai_op_queue（{names}），归档会破坏或删除这些表中的行；请先去掉外键",
        "en": f"Foreign keys point at ai_op_queue ({names}): archiving would break or delete rows there. "
        "Drop them first",
    }
    return Refused(ErrorCode.STATE_CONFLICT, text=text)
