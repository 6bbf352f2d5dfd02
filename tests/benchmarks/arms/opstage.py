"""Opstage as its users run it: rows through the product's own insertion, ``opstage worker`` and ``opstage beat``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, text

from staging.bootstrap import load_adapter, open_dispatcher, open_engine, open_teller
from staging.contracts.status import StatusCode
from staging.domain.canonical import payload_hash
from staging.domain.identity import Actor, Tenant
from staging.domain.intake import dump_json, load_json
from staging.domain.operation import NewOperation
from staging.domain.ports import Prepared
from staging.domain.seal import seal
from staging.settings import Settings
from staging.storage import audit, confirming
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from tests.benchmarks.arms.base import Arm, Run, program
from tests.benchmarks.erp.client import FORM, asked_for
from tests.benchmarks.reference.orders import SUBSIDIARY, USER, Order, payload_of
from tests.support.processes import BeatProcess, LoggedProcess, WorkerProcess, settings_from
from workers.erp.tables import op_ledger

_SEAL_KEY = "a key of the benchmark"
_AT_ONCE = 500
_FIRST_RESULT = '{"resultBillId": "b-1", "message": {"zh": "已创建", "en": "created"}, "result": {}}'
_QUEUE_NAMES = ("sId", "sIdempotencyKey", "iStatusCode", "iAttempt", "iSeq", "sOpId")
_ENDED = """SELECT q.{sIdempotencyKey} AS k, q.{iStatusCode} AS code, q.{iAttempt} AS attempt, q.{iSeq} AS seq,
    (SELECT count(*) FROM ai_op_event e WHERE e.{sOpId} = q.{sId}) AS events
    FROM ai_op_queue q WHERE q.{sIdempotencyKey} NOT LIKE 'seed-%'"""
_BUDGET = {
    "postgresql": (
        (
            "CREATE FUNCTION po_spend() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE po_budget"
            " SET used_cents = used_cents + cast(NEW.total * 100 AS bigint)"
            " WHERE brands = NEW.brands AND subsidiary = NEW.subsidiary; RETURN NULL; END $$"
        ),
        "CREATE TRIGGER po_spend AFTER INSERT ON po_master FOR EACH ROW EXECUTE FUNCTION po_spend()",
    ),
    "mariadb": (
        (
            "CREATE TRIGGER po_spend AFTER INSERT ON po_master FOR EACH ROW UPDATE po_budget"
            " SET used_cents = used_cents + NEW.total * 100 WHERE brands = NEW.brands AND subsidiary = NEW.subsidiary"
        ),
    ),
    "sqlite": (
        (
            "CREATE TRIGGER po_spend AFTER INSERT ON po_master FOR EACH ROW BEGIN UPDATE po_budget"
            " SET used_cents = used_cents + cast(round(NEW.total * 100) AS integer)"
            " WHERE brands = NEW.brands AND subsidiary = NEW.subsidiary; END"
        ),
    ),
}


class Opstage(Arm):
    """``command``: a Python command handler's; else the catalogue form's create through the generic adapter."""

    engines = ("postgresql", "mariadb", "sqlite")
    end = StatusCode.EXECUTED
    still_open = """SELECT count(*) FROM ai_op_queue WHERE "sStatus" = 'pending'"""

    def __init__(
        self, name: str, label: str, command: str = FORM, *, commit: str = "op", **settings: str
    ) -> None:
        self.name, self.label, self.commit = name, label, commit
        self._command, self._settings = command, settings
        self.counter = "product" if command == FORM else "own"

    def env(self, run: Run) -> dict[str, str]:
        return {
            "OPSTAGE_DATABASE_URL": run.url,
            "OPSTAGE_REDIS_URL": run.redis_url,
            "OPSTAGE_DATA_DIR": str(run.folder),
            "OPSTAGE_ERP_ADAPTER": "tests.benchmarks.erp.adapter:build_adapter",
            "OPSTAGE_SEAL_KEY": _SEAL_KEY,
            "OPSTAGE_RATE_LIMIT": "100000000/minute",
            **self._settings,
            **(run.settings or {}),
        }

    def prepare(self, run: Run) -> None:
        if self._command == FORM:  # what a catalogue has no word for, the ERP's database keeps by itself
            with run.connect() as connection:
                for statement in _BUDGET[run.bench.kind]:
                    connection.execute(text(statement))
                connection.commit()

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        settings = settings_from(self.env(run))
        engine = open_engine(settings, settings.database_url)
        prepared = self._prepared(settings, engine)
        store, teller = QueueStore(engine), open_teller(settings, open_dispatcher(settings))
        rows = [self._row(order, prepared, settings) for order in orders]
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]

            def insert(unit: UnitOfWork, some: Sequence[NewOperation] = some) -> None:
                confirming.insert_confirmed(unit.connection, some, Actor(some[0].tenant, USER))
                unit.touch(*(row.id for row in some))

            _, told = store.transact(insert)
            teller.committed(told)
        store.close()

    def workers(self, run: Run) -> list[LoggedProcess]:
        env = self.env(run)
        return [
            WorkerProcess(env, run.folder, name=f"{self.name}-worker", concurrency=run.workers),
            BeatProcess(env, run.folder, name=f"{self.name}-beat"),
        ]

    def waits_ms(self, run: Run, count: int) -> list[float]:
        client = "tests.benchmarks.erp.client"
        return [
            *json.loads(program(sys.executable, client, run, self._command, str(count), env=self.env(run)))
        ]

    def problems(self, run: Run, connection: Connection, expected: Collection[str]) -> list[str]:
        return [*super().problems(run, connection, expected), *self._queue_problems(connection, expected)]

    def _queue_problems(self, connection: Connection, expected: Collection[str]) -> list[str]:
        found = []
        names = {n: connection.dialect.identifier_preparer.quote(n) for n in _QUEUE_NAMES}
        rows = connection.execute(text(_ENDED.format(**names))).all()
        if {row.k for row in rows} != set(expected):
            found.append(f"the queue holds {len(rows)} operations, not the {len(set(expected))} given")
        codes = Counter(row.code for row in rows)
        if set(codes) != {int(self.end)}:
            found.append(f"status codes {dict(codes)}, all should be {int(self.end)}")
        # submitted, claimed, finished: visible 101 in between, one attempt each
        odd = sum(1 for row in rows if row.events != row.seq or row.seq < 3 or row.attempt < 1)
        if odd:
            found.append(f"{odd} operations do not have an event for each step")
        if breaks := audit.verify(connection):
            found.append(f"the audit chain does not hold: {breaks[:3]}")
        return found

    def _prepared(self, settings: Settings, engine: Any) -> Prepared:
        """Prepared once for real; the orders differ in words only."""
        return load_adapter(settings, engine).prepare(
            Actor(Tenant("B0000", SUBSIDIARY), USER), asked_for(payload_of(0), self._command)
        )

    def _row(self, order: Order, prepared: Prepared, settings: Settings) -> NewOperation:
        route = prepared.route
        payload = load_json(order.payload)
        words = {name: payload[name] for name in ("supplier", "memo")}
        if payload != {**prepared.payload, **words}:
            raise AssertionError(f"the order is not as prepared: {payload} / {prepared.payload}")
        row = NewOperation(
            id=order.id,
            tenant=Tenant(order.brands, SUBSIDIARY),
            maker=USER,
            op_type=route.op_type,
            command_type=route.command_type,
            form_id=route.form_id,
            module_id=route.module_id,
            target_table=route.target_table,
            target_bill_id="",
            payload_json=dump_json(payload, by_key=True),
            source_ref_json=None,
            auto_execute=route.auto_execute,
            needs_approval=route.requires_approval,
            allow_duplicate=False,
            code=StatusCode.SUBMITTED,
            idempotency_key=order.id,
            payload_hash=payload_hash(payload),
            target_version=prepared.target_version,
            pins_json=dump_json(prepared.pins),
            preview_json=dump_json(prepared.preview.to_wire()),
            snapshot_hash="",
            preparation_id=order.id,
            confirmed_by=USER,
            conversation_id="c-1",
            trace_id="",
            locale="zh",
            max_attempts=settings.max_attempts,
            expires_in_s=None,
            not_before=None,
        )
        return replace(row, seal=seal(row, _SEAL_KEY))


class Duplicates(Opstage):
    """Every operation has been executed before under its key: all are answered from the ledger, nothing is written."""

    end = StatusCode.EXECUTED_BEFORE
    waits = False
    done = """SELECT count(*) FROM ai_op_queue WHERE "iStatusCode" = 201"""
    moments = """SELECT "tExecutedDate" FROM ai_op_queue WHERE "iStatusCode" = 201 ORDER BY 1"""

    def fill(self, run: Run, orders: Sequence[Order]) -> None:
        rows = [
            {
                "sIdempotencyKey": order.id,
                "sBrandsId": order.brands,
                "sSubsidiaryId": SUBSIDIARY,
                "sOpId": f"first-{order.id}",
                "sCommandType": "erp.po.create" if self._command == FORM else self._command,
                "sPayloadHash": payload_hash(load_json(order.payload)),
                "sResult": _FIRST_RESULT,
            }
            for order in orders
        ]
        with run.connect() as connection:
            connection.execute(insert(op_ledger), rows)
            connection.commit()
        super().fill(run, orders)

    def problems(self, run: Run, connection: Connection, expected: Collection[str]) -> list[str]:
        found = self._queue_problems(connection, expected)
        written = connection.execute(
            text("SELECT count(*) FROM po_master WHERE maker <> 'seed'")
        ).scalar_one()
        return [*found, f"{written} orders were written again"] if written else found
