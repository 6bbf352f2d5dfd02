"""Runs registered queries: grants, typed filter, plan, and the result as the Query Framework has it."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection

from staging.contracts.query import QueryInfo, QueryRequest, QueryResult
from staging.domain.identity import Actor
from staging.domain.query import plan
from workers.erp.query import QueryContext, QueryRegistry, RegisteredQuery
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.commands import read_input
from workers.erp.sql.permissions import Grants, sees
from workers.erp.sql.told import told


class DomainQueries:
    """All within the actor's tenant; a query is for whoever may look at every form it reads."""

    def __init__(self, tables: CatalogueTables, grants: Grants, registry: QueryRegistry) -> None:
        self._tables, self._grants, self._registry = tables, grants, registry

    def granted(self, connection: Connection, actor: Actor) -> list[QueryInfo]:
        """What the actor may ask."""
        grants = self._grants.of(connection, actor)
        return [
            _info(query, actor.locale)
            for query in self._registry
            if all(sees(grants, form) for form in query.policy.reads)
        ]

    def run(
        self, connection: Connection, actor: Actor, name: str, request: QueryRequest, today: date
    ) -> QueryResult:
        """Raises form_not_found, forbidden, what is wrong with the filter (all of it at once), query_…"""
        query = self._registry.get(name)
        for form in query.policy.reads:
            self._grants.require_any(connection, actor, form)
        handler = query.handler
        paging = plan(request, handler.sortable, handler.unique, handler.default_sort, actor.locale)
        asked = read_input(handler.Filter, request.filter, "filter")
        found = handler.find(QueryContext(connection, actor, self._tables, today), asked, paging)
        return QueryResult(
            items=[
                row.model_dump(mode="json", by_alias=True, exclude_none=True)
                for row in found.rows[: paging.size]
            ],
            page=paging.page(len(found.rows), found.total),
            applied_sort=list(paging.sort),
            warnings=[*paging.warnings, *found.warnings],
        )


def _info(query: RegisteredQuery, locale: str) -> QueryInfo:
    policy, handler = query.policy, query.handler
    return QueryInfo(
        name=policy.name,
        label=policy.label.text(locale),
        description=policy.description.text(locale),
        filter_schema=told(handler.Filter, locale),
        row_schema=told(handler.Row, locale, mode="serialization"),
        sortable=[*(name for name in handler.sortable if name != handler.unique), handler.unique],
        default_sort=list(handler.default_sort),
    )
