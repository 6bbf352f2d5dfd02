"""The product as its users run it: migrated databases, the demo ERP, a real worker and a real beat, on every place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Engine

from migrations.run import upgrade
from staging.bootstrap import Services, open_engine, open_services
from staging.contracts.preparation import ConfirmRequest, PrepareRequest
from staging.domain.identity import Actor, ActorKind, Tenant
from staging.domain.operation import Operation
from tests.databases import KINDS, fresh_database
from tests.support.private import EmbeddedRedis
from tests.support.processes import BeatProcess, WorkerProcess, settings_from
from tests.support.waiting import wait_until
from workers.erp.demo import oracle
from workers.erp.demo.foreign import insert_row
from workers.erp.demo.schema import create_demo
from workers.erp.demo.seed import seed_demo

B001, B002 = Tenant("B001", "S01"), Tenant("B002", "S01")
PLACES = [(kind, shared) for kind in KINDS for shared in (True, False)]
LIMITS = {
    "OPSTAGE_LOCK_TIMEOUT_S": "3",
    "OPSTAGE_STATEMENT_TIMEOUT_S": "5",
    "OPSTAGE_DRAIN_BUDGET_S": "2",
    "OPSTAGE_SOFT_TIME_LIMIT_S": "10",
    "OPSTAGE_HARD_TIME_LIMIT_S": "12",
    "OPSTAGE_GRACE_S": "2",
    "OPSTAGE_LEASE_S": "15",
    "OPSTAGE_SWEEP_INTERVAL_S": "0.5",
    "OPSTAGE_ANNOUNCE_AFTER_S": "0.5",
    "OPSTAGE_BACKOFF_BASE_S": "0.2",
    "OPSTAGE_SEAL_KEY": "a key of tests",
}


def person(user: str, tenant: Tenant = B001) -> Actor:
    return Actor(tenant, user, ActorKind.PERSON)


@dataclass
class Product:
    """Services in this process, execution in a worker's; ``erp`` is the ERP's own database."""

    services: Services
    erp: Engine
    queue: Engine
    env: dict[str, str]

    def stage(self, user: str, *, confirm: ConfirmRequest | None = None, **request: Any) -> Operation:
        """An agent prepares, the person confirms; not waited for."""
        agent = Actor(B001, user, ActorKind.AGENT)
        prepared = self.services.prepare.prepare(agent, PrepareRequest(**request))
        (operation,) = self.services.confirm.confirm(person(user), prepared.preparation_id, confirm)
        return operation

    def run(self, user: str, **request: Any) -> Operation:
        """``stage``, and wait until it has ended."""
        return self.ended(user, self.stage(user, **request).id)

    def ended(self, user: str, op_id: str) -> Operation:
        return self.ended_as(person(user), op_id)

    def ended_as(self, actor: Actor, op_id: str) -> Operation:
        """The operation once it has come to an end."""

        def terminal() -> Operation | None:
            operation = self.services.inspect.get(actor, op_id)
            code = operation.status_code
            return operation if code is not None and code.is_terminal else None

        found = wait_until(terminal, 40, f"operation {op_id} ends", poll_s=0.05)
        assert found is not None
        return found

    def foreign(self, user: str, **values: Any) -> str:
        """A row of plain SQL; returns its id."""
        row = {"sBrandsId": "B001", "sSubsidiaryId": "S01", "sMakePerson": user, **values}
        with self.queue.begin() as connection:
            insert_row(connection, **row)
        return str(row["sId"])

    def ask(self, question: Any, *args: Any, **kw: Any) -> Any:
        """One of ``oracle``'s questions, to the ERP's database itself."""
        with self.erp.connect() as connection:
            return question(connection, *args, **kw)


@pytest.fixture(
    scope="session", params=PLACES, ids=[f"{k}-{'shared' if s else 'separate'}" for k, s in PLACES]
)
def product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis
) -> Iterator[Product]:
    kind, shared = request.param
    folder = tmp_path_factory.mktemp("product")
    with ExitStack() as stack:
        queue_url = stack.enter_context(fresh_database(kind, folder))
        erp_url = queue_url if shared else stack.enter_context(fresh_database(kind, folder))
        mark = folder.name
        env = {
            **LIMITS,
            "OPSTAGE_DATABASE_URL": queue_url,
            "OPSTAGE_ERP_DATABASE_URL": "" if shared else erp_url,
            "OPSTAGE_REDIS_URL": session_redis.url,
            "OPSTAGE_DATA_DIR": str(folder),
            "OPSTAGE_QUEUE_NAME": f"{mark}.execute",
            "OPSTAGE_SWEEP_QUEUE_NAME": f"{mark}.sweep",
        }
        settings = settings_from(env)
        upgrade(settings.database_url, "queue")
        upgrade(settings.erp_url, "erp")
        queue = open_engine(settings, settings.database_url)
        erp = queue if shared else open_engine(settings, settings.erp_url)
        stack.callback(queue.dispose)
        stack.callback(erp.dispose)
        create_demo(erp)
        seed_demo(erp)
        stack.enter_context(WorkerProcess(env, folder, name="worker", concurrency=2))
        stack.enter_context(BeatProcess(env, folder))
        services = stack.enter_context(open_services(settings))
        made = Product(services, erp, queue, env)
        yield made
        assert made.ask(oracle.inconsistencies) == []
