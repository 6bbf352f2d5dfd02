"""``ports.ErpAdapter`` for an ERP that a catalogue of forms describes: the generic SQL adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, tzinfo
from typing import Any

from sqlalchemy import Engine

from staging.contracts.form import Catalogue
from staging.contracts.preparation import OpType, PrepareItem
from staging.contracts.query import QueryInfo, QueryRequest, QueryResult
from staging.domain.identity import Actor
from staging.domain.ports import ErpTransaction, Execution, Ledger, Outcome, Prepared, Route
from workers.erp.checks.problem import Problem
from workers.erp.forms import check_catalogue
from workers.erp.handlers import HandlerRegistry
from workers.erp.introspect import introspect
from workers.erp.ledger import SqlLedger
from workers.erp.query import QueryRegistry
from workers.erp.sql.catalogue_tables import tables_of
from workers.erp.sql.domain_queries import DomainQueries
from workers.erp.sql.lookups import Lookups
from workers.erp.sql.permissions import APPROVE, Grants, allows
from workers.erp.sql.prepare import Preparer
from workers.erp.sql.queries import Queries
from workers.erp.sql.routing import Router
from workers.erp.sql.transaction import SqlTransaction, open_transaction, reading


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqlAdapter:
    """``engine`` is the ERP's (``staging.storage.engine.make_engine``); ``time_zone`` the tenants', for "today".

    Makes no connection until it is used. ``close`` disposes of ``engine``.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        engine: Engine,
        handlers: HandlerRegistry | None = None,
        *,
        time_zone: tzinfo = UTC,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.catalogue = catalogue
        self.ledger: Ledger = SqlLedger()
        self._engine = engine
        tables, self._grants = tables_of(catalogue), Grants(catalogue)
        handlers = HandlerRegistry(catalogue.commands) if handlers is None else handlers
        self._router = Router(tables, handlers)
        self._preparer = Preparer(tables, self._grants, self._router, clock, time_zone)
        self._queries = Queries(tables, self._grants)
        self._lookups = Lookups(tables, self._grants, handlers, self._queries)
        self._domain = DomainQueries(tables, self._grants, QueryRegistry(catalogue.queries))
        self._clock, self._zone = clock, time_zone

    def route(self, form_id: str, op_type: str, command_type: str = "", payload: Any = None) -> Route:
        target = self._router.find(form_id, op_type, command_type)
        return target.route(self._router.values_of_payload(target, payload))

    def prepare(self, actor: Actor, item: PrepareItem) -> Prepared:
        with reading(self._engine) as connection:
            return self._preparer.prepare(connection, actor, item)

    def recheck(self, actor: Actor, prepared: Prepared) -> None:
        # A new record has no values to agree with each other: grants and references stand for themselves.
        route = prepared.route
        target = self._router.find(route.form_id, route.op_type, route.command_type)
        with reading(self._engine, snapshot=target.op is not OpType.CREATE) as connection:
            self._preparer.recheck(connection, actor, prepared)

    def may_approve(self, actor: Actor, route: Route) -> bool:
        with reading(self._engine) as connection:
            return allows(self._grants.of(connection, actor), route.form_id, APPROVE)

    def restore_payload(self, prepared: Prepared) -> dict[str, Any]:
        return self._preparer.restore_payload(prepared)

    def forms(self, actor: Actor, q: str) -> list[dict[str, Any]]:
        with reading(self._engine) as connection:
            return self._lookups.forms(connection, actor, q)

    def form_schema(self, actor: Actor, form_id: str) -> dict[str, Any]:
        with reading(self._engine) as connection:
            return self._lookups.form_schema(connection, actor, form_id)

    def field_options(self, actor: Actor, form_id: str, field: str, q: str, page: int) -> QueryResult:
        with reading(self._engine) as connection:
            return self._lookups.field_options(connection, actor, form_id, field, q, page)

    def lookup_record(self, actor: Actor, form_id: str, record: str) -> dict[str, Any]:
        with reading(self._engine) as connection:
            return self._lookups.record(connection, actor, form_id, record)

    def query_records(self, actor: Actor, form_id: str, request: QueryRequest) -> QueryResult:
        with reading(self._engine) as connection:
            return self._queries.records(connection, actor, form_id, request)

    def queries(self, actor: Actor) -> list[QueryInfo]:
        with reading(self._engine) as connection:
            return self._domain.granted(connection, actor)

    def run_query(self, actor: Actor, name: str, request: QueryRequest) -> QueryResult:
        today = self._clock().astimezone(self._zone).date()
        with reading(self._engine) as connection:
            return self._domain.run(connection, actor, name, request, today)

    def transaction(self) -> AbstractContextManager[ErpTransaction]:
        return open_transaction(self._engine, self._grants)

    def apply(self, tx: ErpTransaction, execution: Execution) -> Outcome:
        (outcome,) = self._execute_all(tx, [execution])
        return outcome

    def in_sets(self, execution: Execution) -> bool:
        return self._preparer.in_sets(execution)

    def apply_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> list[Outcome]:
        return self._execute_all(tx, executions)

    def _execute_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> list[Outcome]:
        grants = tx.grants if isinstance(tx, SqlTransaction) else self._grants
        return self._preparer.execute_all(tx.connection, grants, executions)

    def check(self) -> Sequence[Problem]:
        return check_catalogue(self.catalogue, self._engine)

    def introspect(self, tables: Sequence[str], locale: str) -> str:
        return introspect(self._engine, tables, locale)

    def close(self) -> None:
        self._engine.dispose()
