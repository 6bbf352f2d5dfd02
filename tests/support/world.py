"""One queue and one ERP on real databases, with the engine's parts in this process and an oracle beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, delete, update

from staging.bootstrap import load_adapter, open_dispatcher, open_engine, open_teller
from staging.contracts.status import StatusCode
from staging.domain.canonical import payload_hash
from staging.domain.identity import Actor, ActorKind, new_id
from staging.domain.operation import NewOperation, Operation
from staging.domain.ports import Dispatcher, ErpAdapter
from staging.domain.seal import seal
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import claims, confirming, journal, operations
from staging.storage.dialect import db_now_plus
from staging.storage.journal import JournalEntry
from staging.storage.tables import metadata, op_queue
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from tests.databases import fresh_database
from tests.support.effects_adapter import FORM, ROWS, create_effects, effects, effects_row
from tests.support.oracle import Oracle
from tests.support.processes import settings_from
from tests.support.queue_rows import TENANT, foreign_insert, new_operation
from tests.support.waiting import wait_until
from workers.erp.tables import erp_metadata
from workers.executor import Executor
from workers.reconciler import Reconciler
from workers.sweeper import Sweeper

PERSON = Actor(TENANT, "u-lin", ActorKind.PERSON)
ADAPTER = "tests.support.effects_adapter:build_adapter"
SEAL_KEY = "a key of tests"
# Short, but nested as Settings demands.
LIMITS = {
    "OPSTAGE_LOCK_TIMEOUT_S": "0.3",
    "OPSTAGE_STATEMENT_TIMEOUT_S": "1.0",
    "OPSTAGE_DRAIN_BUDGET_S": "1.5",
    "OPSTAGE_SOFT_TIME_LIMIT_S": "3.5",
    "OPSTAGE_HARD_TIME_LIMIT_S": "4.5",
    "OPSTAGE_GRACE_S": "0.5",
    "OPSTAGE_LEASE_S": "5.0",
    "OPSTAGE_SWEEP_INTERVAL_S": "0.3",
    "OPSTAGE_ANNOUNCE_AFTER_S": "0.3",
    "OPSTAGE_BACKOFF_BASE_S": "0.02",
    "OPSTAGE_BACKOFF_MAX_S": "0.05",
    "OPSTAGE_MAX_ATTEMPTS": "3",
}

# Limits as deployed, for tests of something else than limits: a lease lasts longer than the test.
DEPLOYED = {
    "lease_s": "300",
    "hard_time_limit_s": "200",
    "soft_time_limit_s": "150",
    "statement_timeout_s": "20",
    "lock_timeout_s": "5",
    "drain_budget_s": "20",
    "announce_after_s": "1",
    "sweep_interval_s": "1",
}


@dataclass(frozen=True)
class Databases:
    """URLs of queue and ERP; the same one twice where they share a database."""

    kind: str
    queue_url: str
    erp_url: str

    @property
    def shared(self) -> bool:
        return self.queue_url == self.erp_url


@contextmanager
def databases(kind: str, shared: bool, folder: Path) -> Iterator[Databases]:
    """Fresh databases with all tables, dropped afterwards."""
    with ExitStack() as stack:
        queue_url = stack.enter_context(fresh_database(kind, folder))
        erp_url = queue_url if shared else stack.enter_context(fresh_database(kind, folder))
        made = Databases(kind, queue_url, erp_url)
        create_tables(made)
        yield made


def create_tables(where: Databases) -> None:
    """All tables of queue and ERP, in databases that are empty."""
    settings = settings_from(
        {"OPSTAGE_DATABASE_URL": where.queue_url, "OPSTAGE_ERP_DATABASE_URL": where.erp_url}
    )
    for url, tables in ((where.queue_url, metadata), (where.erp_url, erp_metadata)):
        engine = open_engine(settings, url)
        tables.create_all(engine)
        if tables is erp_metadata:
            create_effects(engine)
        engine.dispose()


class World:
    """The engine in this process. ``settings`` override ``LIMITS``; ``through`` replaces a URL by one of a proxy."""

    def __init__(self, where: Databases, redis_url: str, **settings: str) -> None:
        self.where, self.kind, self.shared = where, where.kind, where.shared
        self.env = {
            **LIMITS,
            # MariaDB counts lock waits in whole seconds: its statement limit has to lie above one.
            **({"OPSTAGE_STATEMENT_TIMEOUT_S": "1.4"} if where.kind == "mariadb" else {}),
            "OPSTAGE_DATABASE_URL": where.queue_url,
            "OPSTAGE_ERP_DATABASE_URL": "" if where.shared else where.erp_url,
            "OPSTAGE_REDIS_URL": redis_url,
            "OPSTAGE_ERP_ADAPTER": ADAPTER,
            "OPSTAGE_SEAL_KEY": SEAL_KEY,
            **{f"OPSTAGE_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self.settings: Settings = settings_from(self.env)
        self.queue: Engine = open_engine(self.settings, self.settings.database_url)
        self.erp: Engine = (
            self.queue if self.settings.shared_database else open_engine(self.settings, self.settings.erp_url)
        )
        self.store = QueueStore(self.queue)
        self.adapter: ErpAdapter = load_adapter(self.settings, self.erp)
        self.dispatcher: Dispatcher = open_dispatcher(self.settings)
        self.teller: Teller = open_teller(self.settings, self.dispatcher)
        self.reconciler = Reconciler(self.store, self.adapter, self.teller, self.settings)
        self.executor = Executor(self.store, self.adapter, self.teller, self.settings, self.reconciler)
        self.sweeper = Sweeper(self.store, self.reconciler, self.teller, self.dispatcher, self.settings)
        self.oracle = Oracle(where.queue_url, where.erp_url)

    def close(self) -> None:
        self.adapter.close()
        self.store.close()

    # --- staging ---------------------------------------------------------------------------------------------------

    def row(self, *steps: dict[str, Any], note: str = "", **changes: Any) -> NewOperation:
        """A confirmed operation whose execution takes ``steps``; sealed as our confirm seals."""
        payload = {"steps": list(steps), "note": note}
        defaults: dict[str, Any] = {
            "form_id": FORM,
            "command_type": f"test.{FORM}.create",
            "module_id": "test",
            "target_table": "effects",
            "payload_json": json.dumps(payload, ensure_ascii=False),
            "payload_hash": payload_hash(payload),
            "max_attempts": self.settings.max_attempts,
        }
        made = new_operation(**{**defaults, **changes})
        return replace(made, seal=seal(made, SEAL_KEY))

    def stage(self, *steps: dict[str, Any], **changes: Any) -> str:
        """Confirm one operation (see ``row``); returns its id."""
        return self.confirm(self.row(*steps, **changes))[0]

    def confirm(self, *rows: NewOperation) -> list[str]:
        """Insert as a confirm does, in one transaction, and tell the world; the oracle knows what was accepted."""
        ids = [row.id for row in rows]

        def insert(unit: UnitOfWork) -> None:
            confirming.insert_confirmed(unit.connection, rows, PERSON)
            unit.touch(*ids)

        _, told = self.store.transact(insert)
        self.oracle.accept(ids)
        self.teller.committed(told)
        return ids

    def foreign(self, **values: Any) -> str:
        """INSERT as a foreign program does; returns the id."""
        with self.queue.begin() as connection:
            op_id = foreign_insert(connection, **{"sTargetFormId": FORM, **values})
        self.oracle.accept([op_id])
        return op_id

    # --- running ---------------------------------------------------------------------------------------------------

    def run(self, *ids: str) -> int:
        """One batch; returns how many were claimed."""
        return self.executor.run_batch(ids)

    def settle(self, *ids: str, timeout_s: float = 15.0) -> list[Operation]:
        """Execute and sweep until all of ``ids`` have come to an end."""

        def ended() -> list[Operation]:
            self.executor.run_batch(ids)
            found = [self.read(i) for i in ids]
            if all(o.status_code and o.status_code.is_terminal for o in found):
                return found
            self.sweeper.sweep()
            return []

        return wait_until(ended, timeout_s, f"all of {len(ids)} operations come to an end")

    def claim(self, op_id: str, lease_s: float = 60.0) -> Operation:
        """Claim it as a worker that is not one of ours."""
        claimed, _ = self.store.transact(
            lambda unit: claims.claim(unit.connection, [op_id], new_id(), lease_s)[0]
        )
        (operation,) = claimed
        return operation

    def lapse(self, *ids: str) -> None:
        """The leases are over (instead of waiting for it)."""
        self.set(ids, tLeaseUntil=db_now_plus(-1))

    def set(self, ids: Sequence[str], **values: Any) -> None:
        """Change columns of rows behind the product's back."""
        with self.queue.begin() as connection:
            connection.execute(update(op_queue).where(op_queue.c.sId.in_(ids)).values(**values))

    # --- looking ---------------------------------------------------------------------------------------------------

    def read(self, op_id: str) -> Operation:
        with self.store.read() as connection:
            return operations.by_ids(connection, [op_id])[0]

    def code(self, op_id: str) -> StatusCode | None:
        return self.read(op_id).status_code

    def events(self, op_id: str) -> list[JournalEntry]:
        with self.store.read() as connection:
            return journal.events(connection, op_id)

    def verbs(self, op_id: str) -> list[str]:
        return [event.verb for event in self.events(op_id)]

    def effects(self, op_id: str) -> int:
        return self.oracle.effects(op_id)

    def value(self, row: str) -> int:
        """How often ``lock`` steps on this record were committed."""
        with self.erp.connect() as connection:
            return int(
                connection.execute(
                    effects_row.select()
                    .with_only_columns(effects_row.c.iValue)
                    .where(effects_row.c.sName == row)
                ).scalar_one()
            )

    def wipe(self) -> None:
        """Empty every table, for the next test on the same databases."""
        for engine, tables in ((self.queue, metadata), (self.erp, erp_metadata)):
            with engine.begin() as connection:
                for table in tables.sorted_tables:
                    connection.execute(delete(table))
        with self.erp.begin() as connection:
            connection.execute(delete(effects))
            connection.execute(effects_row.update().where(effects_row.c.sName.in_(ROWS)).values(iValue=0))
        self.oracle.forget()
