"""Probably the same thing twice: a valid record of the tenant that is alike in all fields of the form's natural key."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
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

_LOOKED_AT = 20  # for each that is asked about
_STRIPES = 64  # a few rows for each form and tenant, however many records there will be


def natural_key(form: Form, root: Node) -> str:
    """The natural key of the record that ``root`` will be, as text that is the same for twins.

    Empty for what has no duplicates: a form without natural key, a record that leaves one of its fields empty, a change
    that does not touch it.
    """
    names = form.natural_key
    if not names or not any(name in root.new for name in names):
        return ""
    values = {name: root.value(name) for name in names}
    return "" if any(value is None or value == "" for value in values.values()) else canonical_json(values)


def hold_natural_keys(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, keys: Collection[str]
) -> None:
    """Wait for twins in flight: neither of two uncommitted records sees the other, so without it both would be written.
    Twins share a counter row of ``number_table``; others seldom do."""
    twins = {zlib.crc32(key.encode()) % _STRIPES for key in keys if key}
    hold(connection, tables.catalogue.number_table, tenant, sorted(f"natural:{form.id}:{n}" for n in twins))


def find_duplicates(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, roots: Mapping[str, Node]
) -> dict[str, str]:
    """Natural key → key of a stored record that has it; ``roots`` are asked about, by their natural key."""
    asked = {key: root for key, root in roots.items() if key}
    if not asked:
        return {}
    master, names = tables.master(form.id), form.natural_key
    columns: list[Column[Any]] = [master.column(n) for n in names]
    terms = [
        column.in_([to_sql(master.fields[n], root.value(n)) for root in asked.values()])
        for n, column in zip(names, columns, strict=True)
    ]
    itself = [root.key for root in asked.values() if root.key]
    if itself:
        terms.append(master.key.not_in(itself))
    statement = select(master.key, *columns).where(*master.of_tenant(tenant), *terms)
    if form.states.invalid:
        statement = statement.where(flag_is(master.named(form.states.invalid.column), False))
    limit = _LOOKED_AT * len(asked)
    rows = connection.execute(statement.order_by(master.key).limit(limit)).all()
    if len(rows) == limit and len(asked) > 1:  # values of one with those of another: too many to be sure
        each = ({key: root} for key, root in asked.items())
        return {
            k: v for one in each for k, v in find_duplicates(connection, tables, tenant, form, one).items()
        }
    wanted = {key: [root.value(n) for n in names] for key, root in asked.items()}
    found: dict[str, str] = {}
    for stored, *values in rows:
        # Equal in SQL may be less than equal (case, trailing blanks): the same decision on every engine.
        now = [to_json(master.fields[n], value) for n, value in zip(names, values, strict=True)]
        for key in (key for key, value in wanted.items() if value == now):
            found.setdefault(key, str(stored))
    return found
