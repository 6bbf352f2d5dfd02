"""The demo ERP behind its real adapter, without queue or workers: prepare, and execute in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import PrepareItem
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor, Tenant, new_id
from staging.domain.ports import Execution, Outcome, Prepared
from staging.settings import Settings
from staging.storage.engine import make_engine
from tests.databases import fresh_database
from workers.erp.demo import build_adapter, oracle
from workers.erp.demo.setup import set_up
from workers.erp.sql.adapter import SqlAdapter
from workers.erp.tables import erp_metadata

FIRST, SECOND = Tenant("B001", "S01"), Tenant("B002", "S01")


@dataclass(frozen=True, slots=True)
class DemoErp:
    """Created and seeded; ``user`` is one of the first tenant unless ``tenant`` says otherwise."""

    engine: Engine
    adapter: SqlAdapter

    def prepare(
        self, user: str, command: str, tenant: Tenant = FIRST, locale: str = "en", **item: Any
    ) -> Prepared:
        actor = Actor(tenant, user, locale=locale)
        return self.adapter.prepare(actor, PrepareItem(command_type=command, **item))

    def execute(self, user: str, prepared: Prepared, **changes: Any) -> Outcome:
        """Execute what was prepared, in a transaction of its own."""
        with self.adapter.transaction() as tx:
            outcome = self.adapter.apply(tx, self.execution(user, prepared, **changes))
            tx.commit()
        return outcome

    def run(self, user: str, command: str, **item: Any) -> Outcome:
        """Prepare and execute at once."""
        return self.execute(user, self.prepare(user, command, **item))

    def execution(self, user: str, prepared: Prepared, tenant: Tenant = FIRST, **changes: Any) -> Execution:
        """The row that confirming ``prepared`` would have written."""
        values: dict[str, Any] = {
            "payload": prepared.payload,
            "pins": prepared.pins,
            "target_version": prepared.target_version,
            "prepared": True,
            **changes,
        }
        return Execution(
            op_id=new_id(),
            actor=Actor(tenant, user, locale="en"),
            route=prepared.route,
            target_bill_id=prepared.target_bill_id,
            source_ref=prepared.source_ref,
            **values,
        )

    def foreign(self, user: str, command: str, payload: dict[str, Any], record: str = "") -> Outcome:
        """Execute a row that another program wrote: nothing prepared, nothing pinned."""
        route = self.adapter.route("", "", command)
        execution = Execution(
            op_id=new_id(),
            actor=Actor(FIRST, user, locale="en"),
            route=route,
            target_bill_id=record,
            payload=payload,
            source_ref=None,
            pins=None,
            target_version="",
            prepared=False,
        )
        with self.adapter.transaction() as tx:
            outcome = self.adapter.apply(tx, execution)
            tx.commit()
        return outcome

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    def level(self, product_no: str, warehouse_no: str = "CK03") -> oracle.Level:
        with self.reading() as connection:
            return oracle.level(connection, "B001", warehouse_no, product_no)

    def row(self, table: str, **equal: Any) -> Any:
        with self.reading() as connection:
            return oracle.one(connection, table, sBrandsId="B001", **equal)

    def inconsistencies(self) -> list[str]:
        with self.reading() as connection:
            return oracle.inconsistencies(connection)


@contextmanager
def demo_erp(kind: str, directory: Path) -> Iterator[DemoErp]:
    """A seeded demo ERP in a database of its own on engine ``kind``."""
    with fresh_database(kind, directory) as url:
        engine = make_engine(url, pool_size=10, statement_timeout_s=20, lock_timeout_s=10)
        try:
            set_up(engine)
            erp_metadata.create_all(engine)
            yield DemoErp(engine, build_adapter(Settings(_env_file=None), engine))
        finally:
            engine.dispose()


def refused(call: Callable[[], Any], code: ErrorCode) -> OpstageError:
    """The error of ``call``, which must be of ``code``."""
    with pytest.raises(OpstageError) as caught:
        call()
    assert caught.value.code is code, caught.value
    return caught.value


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run ``calls`` together; their results, or the OpstageErrors they raised, in order."""
    results: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(n: int) -> None:
        barrier.wait()
        try:
            results[n] = calls[n]()
        except OpstageError as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(result is not None for result in results)
    return results
