"""The ERP of the tests for workers from which a safeguard was taken (``TORTURE_PLANT``): torture must notice.

Loaded by ``OPSTAGE_ERP_ADAPTER``; what it removes it replaces at start, so that the product has no switch for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, select

from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.domain.ports import ErpTransaction, Execution, LedgerEntry, LedgerRow, Outcome
from staging.settings import Settings
from staging.storage import claims, operations
from staging.storage.engine import make_engine
from staging.storage.tables import op_queue
from staging.storage.unit_of_work import QueueStore
from tests.support.effects_adapter import EffectsAdapter, RecordingLedger, remember_key
from workers.outcomes import succeeded
from workers.writeback import LeaseLost, write_back


class _NoLedger(RecordingLedger):
    """Nothing is written before the business change, so nobody ever finds anything."""

    def insert_first(
        self,
        connection: Connection,
        tenant: Tenant,
        key: str,
        op_id: str,
        command_type: str,
        payload_hash: str,
    ) -> LedgerEntry | None:
        remember_key(connection, op_id, key)
        return None

    def insert_all(
        self, connection: Connection, tenant: Tenant, rows: Sequence[LedgerRow]
    ) -> dict[str, LedgerEntry]:
        for row in rows:
            remember_key(connection, row.op_id, row.key)
        return {}

    def store_results(
        self, connection: Connection, tenant: Tenant, results: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """There is no row to keep it in."""


class _NoFence(RecordingLedger):
    def is_fenced(self, connection: Connection, op_id: str, attempt: int) -> bool:
        return False


class _StatusFirst(EffectsAdapter):
    """Writes (and so publishes) the row's end before the ERP has committed."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        super().__init__(engine)
        self._queue = QueueStore(make_engine(settings.database_url))

    def apply(self, tx: ErpTransaction, execution: Execution) -> Outcome:
        outcome = super().apply(tx, execution)
        with self._queue.read() as connection:
            (operation,) = operations.by_ids(connection, [execution.op_id])
        try:
            self._queue.transact(lambda unit: write_back(unit, operation, succeeded(operation, outcome)))
        except (LeaseLost, ValueError):
            return outcome  # somebody else's by now: the product's own checks go on
        return outcome


def _any_token(move: Callable[..., bool]) -> Callable[..., bool]:
    """``operations.move`` that takes whatever token the row has for the caller's."""

    def moved(connection: Connection, verb: Any, operation: Operation, *args: Any, **kw: Any) -> bool:
        if kw.get("token"):
            token = select(op_queue.c.sLeaseToken).where(op_queue.c.sId == operation.id)
            kw["token"] = connection.execute(token).scalar() or kw["token"]
        return move(connection, verb, operation, *args, **kw)

    return moved


def _always_held(connection: Connection, op_id: str, token: str) -> bool:
    return True


def build_adapter(settings: Settings, engine: Engine) -> EffectsAdapter:
    """The adapter, with what ``TORTURE_PLANT`` names removed. Raises KeyError for a name it does not know."""
    plant = os.environ["TORTURE_PLANT"]
    adapter = _StatusFirst(settings, engine) if plant == "order" else EffectsAdapter(engine)
    ledgers = {"ledger": _NoLedger, "fencing": _NoFence, "order": RecordingLedger}
    adapter.ledger = ledgers[plant]()
    if plant in ("fencing", "order"):
        claims.is_held = _always_held
    if plant == "fencing":
        operations.move = _any_token(operations.move)
    return adapter
