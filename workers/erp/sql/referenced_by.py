"""A record that valid records of other forms build on must not be taken away from under them."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Select, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form
from staging.domain.errors import Refused
from staging.domain.identity import Tenant
from staging.storage.dialect import flag_is
from workers.erp.sql.catalogue_tables import CatalogueTables, RowTable


def check_not_referenced(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, form: Form, key: str
) -> None:
    """Raise state_conflict naming the first valid record that refers to ``key`` (``lock_when_referenced_by``).

    Race-free at execution, after the record's own row is locked: whoever generates from it locks that row, too.
    """
    for path in form.lock_when_referenced_by:
        number = connection.execute(_first(tables, tenant, path, key)).scalar()
        if number is not None:
            other = tables.form(path.split(".")[0]).label
            raise Refused(
                ErrorCode.STATE_CONFLICT,
                {"form": form.id, "by": str(number)},
                text={
                    "zh": f"已被{other.zh}“{number}”引用，请先作废该单据",
                    "en": f'{other.en} "{number}" is based on it; make that one invalid first',
                },
            )


def _first(tables: CatalogueTables, tenant: Tenant, path: str, key: str) -> Select[str]:
    """'form.field' or 'form.child.field' as a SELECT of the referring record's number (or key)."""
    form_id, *children, field = path.split(".")
    form, master = tables.form(form_id), tables.master(form_id)
    shown: Column[str] = master.column(form.number.field) if form.number else master.key
    statement = select(shown).where(*master.of_tenant(tenant))
    upper: RowTable = master
    for child in children:
        table = upper.children[child]
        if table.parent is None:
            raise LookupError(f"{path}: {child} has no parent column")
        statement = statement.join(table.table, table.parent == upper.key)
        upper = table
    statement = statement.where(upper.column(field) == key)
    if form.states.invalid:
        statement = statement.where(flag_is(master.named(form.states.invalid.column), False))
    return statement.limit(1)
