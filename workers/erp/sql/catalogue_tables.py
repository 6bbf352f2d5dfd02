"""The catalogue's tables as SQLAlchemy sees them: the only place where names of a catalogue become SQL identifiers.

Lightweight: just the columns the catalogue names, typed for exact values, no constraints, never used for DDL. A
physical table that two forms share has a ``Table`` in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, MetaData, Table
from sqlalchemy.types import TypeEngine

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue, Child, Form, FormField, Generate, Stamp, StockEffect, Tenancy
from staging.domain.errors import Refused
from staging.domain.identity import Tenant
from staging.storage.dialect import ExactDecimal, Flag, IdString, UtcDateTime
from workers.erp.sql.values import sql_type

KEY = IdString(64)
USER = IdString(64)


@dataclass(frozen=True, slots=True)
class RowTable:
    """A form's master table or one of its line tables. ``path``: "" for the master, then "parts", "parts.tiers".

    ``brands``/``subsidiary`` are None where lines do not repeat the tenant (their master is checked then);
    ``parent``/``line_no`` are None for a master. ``fields`` and ``children`` go by public name.
    """

    path: str
    table: Table
    key: Column[str]
    brands: Column[str] | None
    subsidiary: Column[str] | None
    parent: Column[str] | None
    line_no: Column[int] | None
    fields: Mapping[str, FormField]
    children: Mapping[str, RowTable]

    def column(self, field: str) -> Column[Any]:
        """The column of a public field name; KeyError for an unknown one."""
        return self.table.c[self.fields[field].column]

    def named(self, column: str) -> Column[Any]:
        """A column by its SQL name, where the catalogue names one that is no field (flags, links)."""
        return self.table.c[column]

    def of_tenant(self, tenant: Tenant) -> list[ColumnElement[bool]]:
        """The WHERE terms that keep a statement within ``tenant``; empty where the table has no tenant columns."""
        if self.brands is None or self.subsidiary is None:
            return []
        return [self.brands == tenant.brands_id, self.subsidiary == tenant.subsidiary_id]

    def tenant_values(self, tenant: Tenant) -> dict[str, str]:
        """Column → value, for an insert."""
        if self.brands is None or self.subsidiary is None:
            return {}
        return {self.brands.name: tenant.brands_id, self.subsidiary.name: tenant.subsidiary_id}

    def walk(self) -> Iterator[RowTable]:
        """This table and all below it, upper ones first."""
        yield self
        for child in self.children.values():
            yield from child.walk()


class CatalogueTables:
    """Tables of every form of ``catalogue``; build once per process."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.forms: Mapping[str, Form] = {form.id: form for form in catalogue.forms}
        self._extra = _extra_columns(catalogue)
        self._masters = {form.id: self._master(form) for form in catalogue.forms}
        self._stock = {form.id: _stock_table(form, form.stock) for form in catalogue.forms if form.stock}

    def form(self, form_id: str) -> Form:
        """The form, or ``form_not_found``."""
        found = self.forms.get(form_id)
        if found is None:
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": form_id})
        return found

    def master(self, form_id: str) -> RowTable:
        """The form's master table with its line tables below it, or ``form_not_found``."""
        return self._masters[self.form(form_id).id]

    def stock(self, form_id: str) -> Table:
        """The table on which the form's stock effect works; KeyError for a form without one."""
        return self._stock[form_id]

    def _master(self, form: Form) -> RowTable:
        columns = _Columns()
        columns.add(form.key, KEY)
        columns.add_tenant(form.tenant)
        for stamp in (form.maker, form.modified):
            columns.add_person(stamp)
        for stamp in (form.states.examined, form.states.invalid):
            columns.add_state(stamp)
        return self._row_table(form.id, "", form.table, columns, form, form.tenant)

    def _line(self, form_id: str, path: str, child: Child) -> RowTable:
        columns = _Columns()
        columns.add(child.key, KEY)
        columns.add(child.parent, KEY)
        if child.tenant:
            columns.add_tenant(child.tenant)
        if child.line_no:
            columns.add(child.line_no, BigInteger())
        return self._row_table(form_id, path, child.table, columns, child, child.tenant)

    def _row_table(
        self, form_id: str, path: str, name: str, columns: _Columns, of: Form | Child, tenant: Tenancy | None
    ) -> RowTable:
        for field in of.fields:
            columns.add(field.column, sql_type(field))
        for column, kind in self._extra.get((form_id, path), {}).items():
            columns.add(column, kind)
        table = Table(name, MetaData(), *columns.made())
        line = of if isinstance(of, Child) else None
        return RowTable(
            path=path,
            table=table,
            key=table.c[of.key],
            brands=table.c[tenant.brands] if tenant else None,
            subsidiary=table.c[tenant.subsidiary] if tenant else None,
            parent=table.c[line.parent] if line else None,
            line_no=table.c[line.line_no] if line and line.line_no else None,
            fields={field.name: field for field in of.fields},
            children={c.name: self._line(form_id, f"{path}.{c.name}".lstrip("."), c) for c in of.children},
        )


class _Columns:
    """Collects columns; a name given twice keeps its first type (a system column may be shown as a field, too)."""

    def __init__(self) -> None:
        self._types: dict[str, TypeEngine[Any]] = {}

    def add(self, name: str | None, kind: TypeEngine[Any]) -> None:
        if name:
            self._types.setdefault(name, kind)

    def add_tenant(self, tenant: Tenancy) -> None:
        self.add(tenant.brands, KEY)
        self.add(tenant.subsidiary, KEY)

    def add_person(self, stamp: Stamp | None) -> None:
        if stamp:
            self.add(stamp.by or stamp.column, USER)
            self.add(stamp.at, UtcDateTime())

    def add_state(self, stamp: Stamp | None) -> None:
        if stamp:
            self.add(stamp.column, Flag())
            self.add(stamp.by, USER)
            self.add(stamp.at, UtcDateTime())

    def made(self) -> list[Column[Any]]:
        return [Column(name, kind) for name, kind in self._types.items()]


Extra = dict[tuple[str, str], dict[str, TypeEngine[Any]]]


def _extra_columns(catalogue: Catalogue) -> Extra:
    """Columns that only a generate or a stock effect names, by (form, path) of the table they are in."""
    forms = {form.id: form for form in catalogue.forms}
    extra: Extra = {}
    for form in catalogue.forms:
        for generate in form.generate:
            _links(extra, form, generate)
            _taken(extra, forms, generate)
        if form.stock and form.stock.fulfils_column:
            extra.setdefault((form.id, form.stock.child), {})[form.stock.fulfils_column] = KEY
    return extra


def _links(extra: Extra, form: Form, generate: Generate) -> None:
    if generate.source_bill:
        extra.setdefault((form.id, ""), {})[generate.source_bill] = KEY
    if generate.source_line:
        extra.setdefault((form.id, generate.target_child), {})[generate.source_line] = KEY


def _taken(extra: Extra, forms: Mapping[str, Form], generate: Generate) -> None:
    if not generate.write_back:
        return
    limit = limit_field(forms, generate)
    extra.setdefault((generate.source, generate.source_child), {})[generate.write_back.taken] = ExactDecimal(
        limit.precision, limit.decimals or 0
    )


def limit_field(forms: Mapping[str, Form], generate: Generate) -> FormField:
    """The source line's field that bounds what may be taken. KeyError for a catalogue that names none."""
    source = forms[generate.source].child(generate.source_child)
    limit = generate.write_back.limit if generate.write_back else ""
    if source is None:
        raise KeyError(f"{generate.source}.{generate.source_child}")
    return next(f for f in source.fields if f.name == limit)


def _stock_table(form: Form, effect: StockEffect) -> Table:
    line = form.child(effect.child)
    quantity = next(f for f in line.fields if f.name == effect.quantity) if line else None
    if quantity is None:
        raise KeyError(f"{form.id}: stock effect on {effect.child}.{effect.quantity}")
    amount = ExactDecimal(quantity.precision, quantity.decimals or 0)
    columns = _Columns()
    columns.add(effect.key, KEY)
    columns.add_tenant(form.tenant)
    columns.add(effect.product_column, KEY)
    columns.add(effect.warehouse_column, KEY)
    columns.add(effect.quantity_column, amount)
    columns.add(effect.reserved_column, amount)
    return Table(effect.table, MetaData(), *columns.made())


_BUILT: dict[int, CatalogueTables] = {}


def tables_of(catalogue: Catalogue) -> CatalogueTables:
    """The one ``CatalogueTables`` of this catalogue object in this process."""
    built = _BUILT.get(id(catalogue))
    if built is None or built.catalogue is not catalogue:
        built = _BUILT[id(catalogue)] = CatalogueTables(catalogue)
    return built
