"""Does the live database bear a catalogue out: tables, columns, types, lengths, NOT NULL, indexes. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Engine

from staging.contracts.form import Catalogue, Child, Form, FormField
from staging.contracts.preparation import OpType
from staging.storage.engine import read_connection
from workers.erp.checks.column_types import as_flag, as_key, field_problems
from workers.erp.checks.problem import Problem
from workers.erp.checks.reflect import Database, LiveTable
from workers.erp.checks.scope import Scope, scopes

_CREATES = {OpType.CREATE, OpType.GENERATE}
_NUMBER_COLUMNS = ("sBrandsId", "sSubsidiaryId", "sScope", "iLast")


def check_catalogue(catalogue: Catalogue, engine: Engine) -> list[Problem]:
    """Compare ``catalogue`` with the database behind ``engine``; empty where it fits."""
    with read_connection(engine) as connection:
        database = Database(connection)
        return [
            *_permissions(catalogue, database),
            *_number_table(catalogue, database),
            *(problem for form in catalogue.forms for problem in _form(form, catalogue, database)),
        ]


def _permissions(catalogue: Catalogue, database: Database) -> Iterator[Problem]:
    grants = catalogue.permissions
    if grants.table is None:
        return
    columns = (grants.tenant.brands, grants.tenant.subsidiary, grants.user, grants.form, grants.op_type)
    yield from _columns_exist("permissions", grants.table, columns, database)


def _number_table(catalogue: Catalogue, database: Database) -> Iterator[Problem]:
    if any(form.number for form in catalogue.forms):
        yield from _columns_exist("number_table", catalogue.number_table, _NUMBER_COLUMNS, database)


def _form(form: Form, catalogue: Catalogue, database: Database) -> Iterator[Problem]:
    for scope in scopes(form):
        live = database.table(scope.of.table)
        if live is None:
            yield _no_table(f"{scope.path}.table", scope.of.table)
            continue
        yield from _level(scope, live, database)
    yield from _number_index(form, database)
    yield from _links(form, catalogue, database)
    if form.stock:
        effect = form.stock
        columns = [effect.key, form.tenant.brands, form.tenant.subsidiary, effect.product_column]
        columns += [effect.warehouse_column, effect.quantity_column]
        columns += [effect.reserved_column] if effect.reserved_column else []
        yield from _columns_exist(f"forms[{form.id}].stock", effect.table, columns, database)


def _level(scope: Scope, live: LiveTable, database: Database) -> Iterator[Problem]:
    if live.engine and live.engine.lower() != "innodb":
        zh, en = (
            f"存储引擎 {live.engine} 没有事务，须用 InnoDB",
            f"engine {live.engine} has no transactions: use InnoDB",
        )
        yield Problem(f"{scope.path}.table", zh, en)
    system = scope.system_columns()
    for column, word in system.items():
        found = live.columns.get(column)
        if found is None:
            yield _no_column(f"{scope.path} ({word})", live.name, column)
        elif word in ("key", "parent", "tenant"):
            yield from as_key(f"{scope.path} ({word})", column, found)
        elif column in scope.flags():
            yield from as_flag(f"{scope.path} ({word})", column, found)
    if not live.is_unique({scope.of.key}):
        zh, en = f"{scope.of.key} 不是主键也无唯一索引", f"{scope.of.key} is neither primary key nor unique"
        yield Problem(f"{scope.path}.key", zh, en)
    for field in scope.of.fields:
        path = scope.field_path(field)
        found = live.columns.get(field.column)
        if found is None:
            yield _no_column(f"{path}.column", live.name, field.column)
            continue
        yield from field_problems(path, field, found, database.dialect)
        written = field.accepts_input or _CREATES & set(scope.form.operations)
        if written and not found.nullable and not found.has_default and not _always_filled(scope, field):
            zh = f"列 {field.column} 不可为空，但字段既非必填也无默认值"
            en = f"column {field.column} is NOT NULL, but the field is neither required nor has a default"
            yield Problem(f"{path}.required", zh, en)
    yield from _unknown_required(scope, live, set(system))


def _always_filled(scope: Scope, field: FormField) -> bool:
    if field.required or field.default or field.computed or field.column in scope.system_columns():
        return True
    form = scope.form
    return bool(form.number and form.number.field == field.name)


def _unknown_required(scope: Scope, live: LiveTable, system: set[str]) -> Iterator[Problem]:
    """Columns nobody fills, where Opstage inserts rows."""
    if not _CREATES & set(scope.form.operations):
        return
    known = system | {field.column for field in scope.of.fields} | _link_columns(scope)
    for name, column in live.columns.items():
        if name not in known and not column.nullable and not column.has_default:
            zh = f"列 {name} 不可为空且无默认值，目录中没有它，新增会失败"
            en = f"column {name} is NOT NULL without default and not in the catalogue: creating will fail"
            yield Problem(f"{scope.path}.table", zh, en)


def _link_columns(scope: Scope) -> set[str]:
    ways = scope.form.generate
    if isinstance(scope.of, Child):
        return {g.source_line for g in ways if g.source_line and g.target_child == scope.of.name}
    return {g.source_bill for g in ways if g.source_bill}


def _number_index(form: Form, database: Database) -> Iterator[Problem]:
    live = database.table(form.table)
    field = form.field(form.number.field) if form.number else None
    if live is None or field is None:
        return
    tenant = {form.tenant.brands, form.tenant.subsidiary}
    if not live.is_unique({field.column, *tenant}, including=field.column):
        zh = f"单据号列 {field.column} 没有按租户的唯一索引"
        en = f"the number column {field.column} has no unique index per tenant"
        yield Problem(f"forms[{form.id}].number", zh, en, "warning")


def _links(form: Form, catalogue: Catalogue, database: Database) -> Iterator[Problem]:
    sources: Mapping[str, Form] = {f.id: f for f in catalogue.forms}
    for generate in form.generate:
        path = f"forms[{form.id}].generate[{generate.source}]"
        source, child = sources[generate.source], form.child(generate.target_child)
        source_child = source.child(generate.source_child)
        if generate.source_bill:
            yield from _columns_exist(f"{path}.source_bill", form.table, [generate.source_bill], database)
        if generate.source_line and child:
            yield from _columns_exist(f"{path}.source_line", child.table, [generate.source_line], database)
        if generate.write_back and source_child:
            taken = [generate.write_back.taken]
            yield from _columns_exist(f"{path}.write_back.taken", source_child.table, taken, database)


def _columns_exist(
    path: str, table: str, columns: list[str] | tuple[str, ...], database: Database
) -> Iterator[Problem]:
    live = database.table(table)
    if live is None:
        yield _no_table(path, table)
        return
    for column in columns:
        if column not in live.columns:
            yield _no_column(path, table, column)


def _no_table(path: str, table: str) -> Problem:
    return Problem(path, f"数据库中没有表 {table}", f"the database has no table {table}")


def _no_column(path: str, table: str, column: str) -> Problem:
    return Problem(path, f"表 {table} 没有列 {column}", f"table {table} has no column {column}")
