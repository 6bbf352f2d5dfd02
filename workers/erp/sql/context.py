"""What every write of one operation needs to know: where, for whom, when."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from staging.contracts.form import Form, Stamp
from staging.domain.identity import Actor, Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables, RowTable
from workers.erp.sql.numbering import allocate_all


@dataclass(frozen=True, slots=True)
class WriteContext:
    """An open transaction, the catalogue's tables, who acts, now (aware UTC) and the tenant's local date."""

    connection: Connection
    tables: CatalogueTables
    actor: Actor
    now_utc: datetime
    today: date

    @property
    def tenant(self) -> Tenant:
        return self.actor.tenant

    def made_by(self, stamp: Stamp | None) -> dict[str, Any]:
        """Column → value of a who-and-when stamp (maker, modified). ``by``, or else ``column``, holds the user."""
        if stamp is None:
            return {}
        values: dict[str, Any] = {stamp.by or stamp.column: self.actor.user_id}
        if stamp.at:
            values[stamp.at] = self.now_utc
        return values

    def next_numbers(self, form: Form, master: RowTable, count: int) -> list[str] | list[None]:
        """Allocate the form's next document numbers; Nones for a form without a number rule. Empty: as
        ``allocate_all``."""
        if form.number is None:
            return [None] * count
        counters = self.tables.catalogue.number_table
        return allocate_all(self.connection, counters, master, form.number, self.tenant, self.today, count)


def new_key() -> str:
    """A new row's key: 32 hex digits, of which the first 12 are the time, so that new rows lie together in an index."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
