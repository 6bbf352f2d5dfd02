"""Lists of operations for people. Claiming and moving are ``operations``; here nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, literal_column

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.storage.rows import base_select, to_operation
from staging.storage.tables import op_queue

q = op_queue.c


@dataclass(frozen=True, slots=True)
class MakerLists:
    """One user's operations: waiting for them (103), under way, and ended."""

    waiting: list[Operation]
    running: list[Operation]
    recent: list[Operation]


def _of(tenant: Tenant) -> Select[Any]:
    return base_select().where(q.sBrandsId == tenant.brands_id, q.sSubsidiaryId == tenant.subsidiary_id)


def _is(code: StatusCode) -> ColumnElement[bool]:
    same: ColumnElement[bool] = q.iStatusCode == literal_column(str(int(code)))
    return same


def of_maker(connection: Connection, tenant: Tenant, user_id: str, limit: int) -> MakerLists:
    """At most ``limit`` each."""
    mine = _of(tenant).where(q.sMakePerson == user_id)
    pending = mine.where(q.sStatus == Status.PENDING.value)
    waits = _is(StatusCode.WAITING_USER)

    def run(statement: Select[Any]) -> list[Operation]:
        return [to_operation(row) for row in connection.execute(statement.limit(limit))]

    return MakerLists(
        waiting=run(pending.where(waits).order_by(q.tCreateDate)),
        running=run(pending.where(~waits).order_by(q.tCreateDate.desc())),
        recent=run(mine.where(q.sStatus != Status.PENDING.value).order_by(q.tCreateDate.desc())),
    )


def for_approval(connection: Connection, tenant: Tenant, user_id: str, limit: int) -> list[Operation]:
    """Other users' operations at 104, oldest first; whether the user may approve is the caller's to ask."""
    statement = _of(tenant).where(_is(StatusCode.WAITING_APPROVAL), q.sMakePerson != user_id)
    return [to_operation(row) for row in connection.execute(statement.order_by(q.tCreateDate).limit(limit))]
