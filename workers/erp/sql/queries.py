"""The Query Framework over a form's records: typed filters, sortable fields, pages. Tenant and grants are added here.

A filter names filterable fields: a value (equal), a list (any of), ``{"from": …, "to": …}`` (both ends included;
numbers, dates, times) or ``{"contains": text}`` (texts, ignoring case). References by id, number or name, as in a
payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, func, select

from staging.contracts.form import FieldType, Form, FormField
from staging.contracts.query import AppliedSort, QueryRequest, QueryResult
from staging.domain.identity import Actor
from staging.domain.query import Plan, plan
from staging.storage.dialect import sortable
from workers.erp.sql.catalogue_tables import CatalogueTables, RowTable
from workers.erp.sql.change import Node
from workers.erp.sql.coerce import BadValue, coerce, string_value
from workers.erp.sql.permissions import Grants
from workers.erp.sql.problems import Problems
from workers.erp.sql.references import References, wanted_references
from workers.erp.sql.texts import Texts
from workers.erp.sql.values import to_json, to_sql

COUNTED = 10_000
"""A ``total`` above this is not counted."""
_ID = "id"
_RANGED = (FieldType.DECIMAL, FieldType.INTEGER, FieldType.DATE, FieldType.DATETIME)
_TEXTUAL = (FieldType.STRING, FieldType.TEXT)


class Queries:
    def __init__(self, tables: CatalogueTables, grants: Grants) -> None:
        self._tables, self._grants = tables, grants

    def records(
        self, connection: Connection, actor: Actor, form_id: str, request: QueryRequest
    ) -> QueryResult:
        """``items``: ``{id, label, values, texts}``. Raises form_not_found, forbidden, field_unknown, field_invalid,
        query_…"""
        form, master = self._tables.form(form_id), self._tables.master(form_id)
        self._grants.require_any(connection, actor, form.id)
        names = [field.name for field in form.fields if field.sortable]
        paging = plan(request, names, _ID, (_newest_first(form),), actor.locale)
        terms = [
            *master.of_tenant(actor.tenant),
            *_Filter(connection, self._tables, actor, form).terms(request.filter),
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


class _Filter:
    def __init__(self, connection: Connection, tables: CatalogueTables, actor: Actor, form: Form) -> None:
        self._form, self._master = form, tables.master(form.id)
        self._problems = Problems()
        self._references = References(connection, tables, actor.tenant, self._problems, ids_only=False)

    def terms(self, asked: Mapping[str, Any]) -> list[ColumnElement[bool]]:
        """``asked`` as WHERE terms; every bad entry is reported at once."""
        terms: list[ColumnElement[bool]] = []
        for name, raw in asked.items():
            field = self._form.field(name)
            if name == _ID:
                terms.append(
                    self._master.key.in_([str(v) for v in (raw if isinstance(raw, list) else [raw])])
                )
            elif field is None:
                self._problems.unknown(f"filter.{name[:100]}", name, self._form)
            elif not field.filterable:
                zh, en = f"不能按“{field.label.zh}”筛选", f'"{field.label.en}" cannot be filtered by'
                self._problems.bad(f"filter.{name}", zh, en)
            else:
                terms += self._field(field, raw)
        self._problems.raise_any()
        return terms

    def _field(self, field: FormField, raw: Any) -> list[ColumnElement[bool]]:
        column: Column[Any] = self._master.column(field.name)
        path = f"filter.{field.name}"
        if isinstance(raw, Mapping):
            if raw.keys() <= {"from", "to"} and raw and field.type in _RANGED:
                return self._range(field, column, path, raw)
            if raw.keys() == {"contains"} and field.type in _TEXTUAL:
                return self._contains(column, path, raw["contains"])
            self._problems.bad(
                path, "应为值、列表、{from,to} 或 {contains}", "a value, a list, {from,to} or {contains}"
            )
            return []
        if raw is None:
            return [column.is_(None)]
        values = [self._value(field, path, one) for one in _listed(raw)]
        return [column.in_([to_sql(field, v) for v in values if v is not None])]

    def _range(
        self, field: FormField, column: Column[Any], path: str, raw: Mapping[str, Any]
    ) -> list[ColumnElement[bool]]:
        comparable: ColumnElement[Any] = sortable(column) if field.type is FieldType.DECIMAL else column
        low, high = (self._value(field, f"{path}.{end}", raw.get(end)) for end in ("from", "to"))
        bounds = []
        if low is not None:
            bounds.append(comparable >= to_sql(field, low))
        if high is not None:
            bounds.append(comparable <= to_sql(field, high))
        return bounds

    def _contains(self, column: Column[Any], path: str, raw: Any) -> list[ColumnElement[bool]]:
        return [column.icontains(self._text(path, raw), autoescape=True)]

    def _text(self, path: str, raw: Any) -> str:
        try:
            return string_value(raw, 200)
        except BadValue as bad:
            self._problems.bad(path, bad.reason["zh"], bad.reason["en"])
            return ""

    def _value(self, field: FormField, path: str, raw: Any) -> Any:
        loose = field.model_copy(update={"minimum": None, "maximum": None, "length": None})
        try:
            value = coerce(loose, raw)
        except BadValue as bad:
            self._problems.bad(path, bad.reason["zh"], bad.reason["en"])
            return None
        if field.reference is None or value is None:
            return value
        node = Node(self._master, self._form, "add", "filter", new={field.name: value})
        self._references.resolve(wanted_references([node]))
        return node.new[field.name]


def _listed(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else [raw]


def _newest_first(form: Form) -> AppliedSort:
    made = form.maker.at if form.maker else None
    field = next((f for f in form.fields if f.sortable and f.column == made), None)
    return (
        AppliedSort(field=field.name, direction="DESC") if field else AppliedSort(field=_ID, direction="ASC")
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
        if sort.field == _ID:
            column: ColumnElement[Any] = master.key
        else:
            plain = master.column(sort.field)
            order.append(plain.is_(None))
            column = sortable(plain) if master.fields[sort.field].type is FieldType.DECIMAL else plain
        order.append(column.desc() if sort.direction == "DESC" else column.asc())
    return order
