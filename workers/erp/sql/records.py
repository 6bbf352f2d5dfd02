"""Finding a record by id or document number, within a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Row, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form
from staging.domain.errors import FieldProblem, Refused, invalid
from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.coerce import BadValue, string_value
from workers.erp.sql.states import state_columns
from workers.erp.sql.values import to_json

_LONGEST = 200
_MOST_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Record:
    """A master row: ``values`` by public name, JSON-ready; ``flags`` are the state columns by SQL name."""

    key: str
    values: dict[str, Any]
    flags: Mapping[str, Any]


def find_record(
    connection: Connection,
    tables: CatalogueTables,
    tenant: Tenant,
    form: Form,
    record: str,
    *,
    lock: bool = False,
) -> Record:
    """The record whose key is ``record``, else whose document number is. ``lock``: FOR UPDATE where the engine has it.

    Raises record_not_found, record_ambiguous with candidates, or field_required where none is named.
    """
    try:
        wanted = string_value(record, _LONGEST)
    except BadValue:
        raise _not_found(record) from None
    if not wanted:
        zh, en = "缺少单据：请给出单号或 id", "the record is missing: give its document number or id"
        raise invalid([FieldProblem("record", ErrorCode.FIELD_REQUIRED, {"zh": zh, "en": en})])
    found = read_record(connection, tables, tenant, form, wanted, lock=lock)
    if found is None and form.number:
        keys = _keys_by_number(connection, tables, tenant, form, wanted)
        if len(keys) > 1:
            raise _ambiguous(connection, tables, tenant, form, wanted, keys)
        found = read_record(connection, tables, tenant, form, keys[0], lock=lock) if keys else None
    if found is None:
        raise _not_found(record)
    return found


def read_record(
    connection: Connection,
    tables: CatalogueTables,
    tenant: Tenant,
    form: Form,
    key: str,
    *,
    lock: bool = False,
) -> Record | None:
    """The record of that key, None if the tenant has none."""
    master = tables.master(form.id)
    names, flags = list(master.fields), state_columns(form)
    columns: list[Column[Any]] = [master.key, *(master.column(n) for n in names), *map(master.named, flags)]
    statement = select(*columns).where(master.key == key, *master.of_tenant(tenant))
    row: Row[Any] | None = connection.execute(statement.with_for_update() if lock else statement).first()
    # A collation that ignores case would find 'A1' for 'a1'; on every engine only the exact key is the record.
    if row is None or row[0] != key:
        return None
    stored: tuple[Any, ...] = tuple(row)
    values = {n: to_json(master.fields[n], value) for n, value in zip(names, stored[1:], strict=False)}
    return Record(row[0], values, dict(zip(flags, stored[1 + len(names) :], strict=True)))


def _keys_by_number(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, number: str
) -> list[str]:
    master = tables.master(form.id)
    if form.number is None:
        return []
    column = master.column(form.number.field)
    statement = select(master.key, column).where(*master.of_tenant(tenant), column == number)
    rows = connection.execute(statement.order_by(master.key).limit(_MOST_CANDIDATES + 1)).all()
    return [key for key, found in rows if found == number]


def _ambiguous(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, number: str, keys: list[str]
) -> Refused:
    candidates = []
    for key in keys[:_MOST_CANDIDATES]:
        record = read_record(connection, tables, tenant, form, key)
        shown = [*([form.number.field] if form.number else []), *form.title]
        if record:
            candidates.append({"id": key, **{n: record.values[n] for n in dict.fromkeys(shown)}})
    return Refused(ErrorCode.RECORD_AMBIGUOUS, {"record": number}, candidates=tuple(candidates))


def _not_found(record: str) -> Refused:
    return Refused(ErrorCode.RECORD_NOT_FOUND, {"record": record})
