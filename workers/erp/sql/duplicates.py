"""Probably the same thing twice: a valid record of the tenant that is alike in all fields of the form's natural key."""

from __future__ import annotations

import zlib
from typing import Any

from sqlalchemy import Column, Connection, select

from staging.contracts.form import Form
from staging.domain.canonical import canonical_json
from staging.domain.identity import Tenant
from staging.storage.dialect import flag_is
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.numbering import hold
from workers.erp.sql.values import to_json, to_sql

_LOOKED_AT = 20
_STRIPES = 64  # a few rows for each form and tenant, however many records there will be


def find_duplicate(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, root: Node, *, lock: bool
) -> str | None:
    """Key of a record that ``root`` would probably repeat, None if there is none.

    With ``lock`` (at execution) a twin in flight is waited for first: neither of two uncommitted records sees the
    other, so without it both would be written. Twins share a counter row of ``number_table``; others seldom do.

    A form without natural key has no duplicates, nor has a record that leaves one of its fields empty; a change is
    looked at only where it touches the natural key.
    """
    names = form.natural_key
    if not names or not any(name in root.new for name in names):
        return None
    values = {name: root.value(name) for name in names}
    if any(value is None or value == "" for value in values.values()):
        return None
    if lock:
        twins = zlib.crc32(canonical_json(values).encode()) % _STRIPES
        hold(connection, tables.catalogue.number_table, tenant, f"natural:{form.id}:{twins}")
    master = tables.master(form.id)
    columns: list[Column[Any]] = [master.key, *(master.column(n) for n in names)]
    terms = [master.column(n) == to_sql(master.fields[n], value) for n, value in values.items()]
    statement = select(*columns).where(*master.of_tenant(tenant), *terms, master.key != root.key)
    if form.states.invalid:
        statement = statement.where(flag_is(master.named(form.states.invalid.column), False))
    for key, *found in connection.execute(statement.order_by(master.key).limit(_LOOKED_AT)):
        # Equal in SQL may be less than equal (case, trailing blanks): the same decision on every engine.
        if [to_json(master.fields[n], v) for n, v in zip(names, found, strict=True)] == list(values.values()):
            return str(key)
    return None
