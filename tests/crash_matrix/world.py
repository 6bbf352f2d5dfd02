"""Queue and demo ERP on real databases, made by the migrations, with a person who stages and an oracle beside them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select, update
from sqlalchemy.exc import DBAPIError

from migrations import run
from staging.bootstrap import Services, open_engine, open_services
from staging.contracts.preparation import PrepareItem, PrepareRequest
from staging.domain.errors import Transient
from staging.domain.identity import new_id
from staging.domain.ports import Execution
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.dialect import db_now_plus
from staging.storage.engine import make_engine, read_connection
from staging.storage.tables import op_queue
from tests.crash_matrix.cells import Place
from tests.crash_matrix.clients import PERSON
from tests.databases import fresh_database
from tests.support.effects_adapter import create_effects
from tests.support.oracle import Oracle
from tests.support.processes import settings_from
from tests.support.waiting import wait_until
from tests.support.world import Databases
from workers.erp import demo
from workers.erp.demo import oracle as books
from workers.erp.demo.setup import set_up

# Seconds. Long enough to be held at a window, nested as Settings demands; leases are set back instead of waited for.
LIMITS = {
    "OPSTAGE_LOCK_TIMEOUT_S": "0.5",
    "OPSTAGE_STATEMENT_TIMEOUT_S": "5",
    "OPSTAGE_DRAIN_BUDGET_S": "2",
    "OPSTAGE_SOFT_TIME_LIMIT_S": "30",
    "OPSTAGE_HARD_TIME_LIMIT_S": "33",
    "OPSTAGE_GRACE_S": "1",
    "OPSTAGE_LEASE_S": "36",
    "OPSTAGE_HAND_BACK_AFTER_S": "300",  # a batch is claimed whole and stays together
    "OPSTAGE_GROUP_COMMIT_S": "0",  # an operation dies alone; see ``Selection.batch``
    "OPSTAGE_SWEEP_INTERVAL_S": "0.4",
    "OPSTAGE_ANNOUNCE_AFTER_S": "0.3",
    "OPSTAGE_BACKOFF_BASE_S": "0.02",
    "OPSTAGE_BACKOFF_MAX_S": "0.1",
    "OPSTAGE_MAX_ATTEMPTS": "60",
    "OPSTAGE_SEAL_KEY": "a key of tests",
    "OPSTAGE_ERP_ADAPTER": "tests.support.demo_effects:build_adapter",
}
RENEWED_AFTER_S = 36 / 3  # of a lease; then a batch renews what still waits
# For W11: a batch goes on until then. Elsewhere such a task would only keep its worker from ending.
LONG_TASKS = {"OPSTAGE_DRAIN_BUDGET_S": "20"}
_CUSTOMER, _PRODUCT = "KH0001", "CP00001"
_PARTS = [
    {"name": "封面", "quantity": "500", "price": "3.20", "tiers": [{"quantity": "1000", "price": "2.90"}]},
    {"name": "内页", "quantity": "5000", "price": "0.185"},
]


@dataclass(slots=True)
class MatrixWorld:
    """``prepare`` one of the four operations and confirm it; ``services`` are an embedded client's."""

    where: Databases
    env: dict[str, str]
    services: Services
    oracle: Oracle
    _queue: Engine
    _erp: Engine

    def item(self, operation: str) -> PrepareItem:
        """A fresh one of its kind. What update and examine act upon is made first, as the ERP itself would."""
        if operation == "create":
            return PrepareItem(form_id="quotation", op_type="create", payload=_quotation())
        if operation == "adjust":
            payload = {"product": _PRODUCT, "delta": "1.5", "reason": "count_gain"}
            return PrepareItem(command_type="erp.stock_adjustment.create", payload=payload)
        record = self._existing_quotation()
        if operation == "examine":
            return PrepareItem(form_id="quotation", op_type="examine", record=record)
        return PrepareItem(
            form_id="quotation",
            op_type="update",
            record=record,
            payload={"contact": _word(), "validDays": 60},
        )

    def prepare(self, operations: Sequence[str]) -> str:
        """One preparation of all of them; its id."""
        items = [self.item(operation) for operation in operations]
        return self.services.prepare.prepare(PERSON, PrepareRequest(items=items)).preparation_id

    def confirm(self, preparation_id: str) -> list[str]:
        """Ids in the order of its items, asking again while somebody is in the way; the oracle knows what was told."""
        return wait_until(lambda: self.try_confirm(preparation_id), 20, "the confirm is answered", poll_s=0.1)

    def try_confirm(self, preparation_id: str) -> list[str]:
        """The same, asked once: nothing where the answer is "unavailable, try again"."""
        try:
            ids = [o.id for o in self.services.confirm.confirm(PERSON, preparation_id)]
        except Transient:
            return []
        self.oracle.accept(ids)
        return ids

    def of_preparation(self, preparation_id: str) -> list[str]:
        """What is in the queue for it, whoever knows."""
        with read_connection(self._queue) as connection:
            found = connection.execute(
                select(op_queue.c.sId).where(op_queue.c.sPreparationId == preparation_id)
            )
            return [row[0] for row in found]

    def codes(self, ids: Sequence[str]) -> dict[str, int]:
        """Code by operation, of those that are there."""
        q = op_queue.c
        with read_connection(self._queue) as connection:
            found = connection.execute(select(q.sId, q.iStatusCode).where(q.sId.in_(list(ids)))).all()
        return {row[0]: row[1] for row in found}

    def lapse(self, ids: Sequence[str]) -> None:
        """The leases on these are over, instead of waiting for it. Whoever is alive and holds one loses it.

        A row that somebody has locked keeps its lease: nobody could take it over either.
        """
        held = op_queue.c.iStatusCode.in_((101, 102))
        for op_id in sorted(ids):
            lapse = update(op_queue).where(op_queue.c.sId == op_id, held).values(tLeaseUntil=db_now_plus(-1))
            try:
                with self._queue.begin() as connection:
                    connection.execute(lapse)
            except DBAPIError as error:
                if classify_db_error(error) not in (DbFailure.LOCK_TIMEOUT, DbFailure.BUSY):
                    raise

    def crooked(self) -> list[str]:
        """What does not add up in the ERP: stock, totals, numbers with gaps."""
        with read_connection(self._erp) as connection:
            return books.inconsistencies(connection)

    def _existing_quotation(self) -> str:
        adapter = demo.build_adapter(self.services.settings, self._erp)
        item = PrepareItem(form_id="quotation", op_type="create", payload=_quotation())
        plan = adapter.prepare(PERSON, item)
        with adapter.transaction() as tx:
            made = adapter.apply(
                tx, Execution(new_id(), PERSON, plan.route, "", plan.payload, None, plan.pins, "", True)
            )
            tx.commit()
        return made.result_bill_id


def _word() -> str:
    return f"测试{secrets.token_hex(4)}"


def _quotation() -> dict[str, Any]:
    return {"customer": _CUSTOMER, "title": f"台历 {_word()}", "parts": _PARTS}


@contextmanager
def matrix_world(
    place: Place, redis_url: str, folder: Path, settings: dict[str, str] | None = None
) -> Iterator[MatrixWorld]:
    """Fresh databases, migrated and filled; ``settings``: further OPSTAGE_* variables for every process."""
    with fresh_database(place.kind, folder) as queue_url, _erp_database(place, folder, queue_url) as erp_url:
        run.upgrade(queue_url, run.Tree.QUEUE)
        run.upgrade(erp_url, run.Tree.ERP)
        env = {
            **LIMITS,
            "OPSTAGE_DATABASE_URL": queue_url,
            "OPSTAGE_ERP_DATABASE_URL": "" if place.shared else erp_url,
            "OPSTAGE_REDIS_URL": redis_url,
            "OPSTAGE_DATA_DIR": str(folder),
            **(settings or {}),
        }
        plain = settings_from(env)
        filling = make_engine(plain.erp_url, statement_timeout_s=20)
        set_up(filling)
        create_effects(filling)
        filling.dispose()
        queue, erp = open_engine(plain, plain.database_url), open_engine(plain, plain.erp_url)
        with open_services(plain) as services:
            where = Databases(place.kind, queue_url, erp_url)
            yield MatrixWorld(where, env, services, Oracle(queue_url, erp_url), queue, erp)
        erp.dispose()
        queue.dispose()


@contextmanager
def _erp_database(place: Place, folder: Path, queue_url: str) -> Iterator[str]:
    if place.shared:
        yield queue_url
    else:
        with fresh_database(place.kind, folder) as url:
            yield url
