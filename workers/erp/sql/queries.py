"""The Query Framework over a form's records. Tenant and grants are added here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, and_, func, select

from staging.contracts.form import FieldType, Form, FormField
from staging.contracts.query import AppliedSort, QueryRequest, QueryResult
from staging.domain.identity import Actor
from staging.domain.query import Plan, plan
from staging.storage.dialect import sortable
from workers.erp.sql.catalogue_tables import CatalogueTables, RowTable
from workers.erp.sql.change import Node
from workers.erp.sql.filters import ID, Asked, Between, Contains, FormFilter
from workers.erp.sql.permissions import Grants
from workers.erp.sql.problems import Problems
from workers.erp.sql.references import References, Wanted
from workers.erp.sql.texts import Texts
from workers.erp.sql.values import to_json, to_sql

COUNTED = 10_000
"""A ``total`` above this is not counted."""


class Queries:
    def __init__(self, tables: CatalogueTables, grants: Grants) -> None:
        self._tables, self._grants = tables, grants
        self._filters = {form.id: FormFilter(form) for form in tables.forms.values()}

    def described(self, form: Form, locale: str) -> dict[str, Any]:
        """What may be asked: ``{filterSchema, sortable, defaultSort}``."""
        return {
            "filterSchema": self._filters[form.id].schema(locale),
            "sortable": [*_sortable(form), ID],
            "defaultSort": [_newest_first(form).to_wire()],
        }

    def records(
        self, connection: Connection, actor: Actor, form_id: str, request: QueryRequest
    ) -> QueryResult:
        """``items``: ``{id, label, values, texts}``. Raises form_not_found, forbidden, field_unknown, field_invalid,
        query_…"""
        form, master = self._tables.form(form_id), self._tables.master(form_id)
        self._grants.require_any(connection, actor, form.id)
        paging = plan(request, _sortable(form), ID, (_newest_first(form),), actor.locale)
        terms = [
            *master.of_tenant(actor.tenant),
            *_Terms(connection, self._tables, actor, form).of(self._filters[form.id], request.filter),
        ]
        columns: list[Column[Any]] = [master.key, *(master.column(n) for n in master.fields)]
        statement = select(*columns).where(*terms).order_by(*ordering(master, paging))
        rows = connection.execute(statement.offset(paging.offset).limit(paging.size + 1)).all()
        return QueryResult(
            items=self._items(connection, actor, form, [tuple(row) for row in rows[: paging.size]]),
            page=paging.page(len(rows), counted(connection, master, terms)),
            applied_sort=list(paging.sort),
            warnings=list(paging.warnings),
        )

    def _items(
        self, connection: Connection, actor: Actor, form: Form, rows: list[tuple[Any, ...]]
    ) -> list[dict[str, Any]]:
        fields = self._tables.master(form.id).fields
        texts = Texts(connection, self._tables, actor.tenant, actor.locale)
        found = []
        for key, *stored in rows:
            values = {n: to_json(fields[n], value) for n, value in zip(fields, stored, strict=True)}
            for name, value in values.items():
                texts.want(fields[name], value)
            found.append((key, values))
        texts.load()
        return [
            {
                "id": key,
                "label": texts.title(form, key, values),
                "values": values,
                "texts": {name: texts.of(fields[name], value) for name, value in values.items()},
            }
            for key, values in found
        ]


class _Terms:
    """A filter as WHERE terms; every bad entry is reported at once."""

    def __init__(self, connection: Connection, tables: CatalogueTables, actor: Actor, form: Form) -> None:
        self._form, self._master = form, tables.master(form.id)
        self._problems = Problems()
        self._references = References(connection, tables, actor.tenant, self._problems, ids_only=False)

    def of(self, filter_: FormFilter, given: Mapping[str, Any]) -> list[ColumnElement[bool]]:
        terms = [self._term(one) for one in filter_.read(given, self._problems)]
        self._problems.raise_any()
        return terms

    def _term(self, asked: Asked) -> ColumnElement[bool]:
        field, wanted = asked.field, asked.wanted
        column: Column[Any] = self._master.column(field.name) if field else self._master.key
        match wanted:
            case None:
                return column.is_(None)
            case Contains():
                return column.icontains(wanted.text, autoescape=True)
            case Between():
                bound = partial(to_sql, field) if field else str
                comparable = sortable(column) if field and field.type is FieldType.DECIMAL else column
                low = [comparable >= bound(wanted.low)] if wanted.low is not None else []
                high = [comparable <= bound(wanted.high)] if wanted.high is not None else []
                return and_(*low, *high)
            case list():
                values = self._resolved(field, wanted) if field and field.reference else wanted
                return column.in_([to_sql(field, value) for value in values] if field else values)

    def _resolved(self, field: FormField, names: list[Any]) -> list[Any]:
        """Keys for names; records that are invalid by now are found by too."""
        reference = field.reference and field.reference.model_copy(update={"valid_only": False})
        any_state = field.model_copy(update={"reference": reference})
        nodes = [Node(self._master, self._form, "add", "filter", new={field.name: name}) for name in names]
        self._references.resolve([Wanted(node, any_state) for node in nodes])
        return [node.new[field.name] for node in nodes]


def _sortable(form: Form) -> list[str]:
    return [field.name for field in form.fields if field.sortable]


def _newest_first(form: Form) -> AppliedSort:
    made = form.maker.at if form.maker else None
    field = next((f for f in form.fields if f.sortable and f.column == made), None)
    return (
        AppliedSort(field=field.name, direction="DESC") if field else AppliedSort(field=ID, direction="ASC")
    )


def counted(connection: Connection, master: RowTable, terms: Sequence[ColumnElement[bool]]) -> int | None:
    """How many rows there are; None where there are more than ``COUNTED``."""
    some = select(master.key).where(*terms).limit(COUNTED + 1).subquery()
    total = int(connection.execute(select(func.count()).select_from(some)).scalar_one())
    return total if total <= COUNTED else None


def ordering(master: RowTable, paging: Plan) -> list[ColumnElement[Any]]:
    """Empty values last, whatever the engine thinks of them; the unique id ends it."""
    order: list[ColumnElement[Any]] = []
    for sort in paging.sort:
        if sort.field == ID:
            column: ColumnElement[Any] = master.key
        else:
            plain = master.column(sort.field)
            order.append(plain.is_(None))
            column = sortable(plain) if master.fields[sort.field].type is FieldType.DECIMAL else plain
        order.append(column.desc() if sort.direction == "DESC" else column.asc())
    return order
