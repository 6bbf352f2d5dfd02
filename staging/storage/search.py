"""Lists of operations for people. Claiming and moving are ``operations``; here nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal_column, select

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.domain.query import Plan
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
    pending = q.sStatus == literal_column(f"'{Status.PENDING.value}'")  # literal: a partial index matches
    statement = _of(tenant).where(pending, _is(StatusCode.WAITING_APPROVAL), q.sMakePerson != user_id)
    return [to_operation(row) for row in connection.execute(statement.order_by(q.tCreateDate).limit(limit))]


# Public name → column; the only fields one may sort operations by (the unique id besides).
SORTABLE: Mapping[str, ColumnElement[Any]] = {
    "createdAt": q.tCreateDate,
    "executedAt": q.tExecutedDate,
    "code": q.iStatusCode,
    "status": q.sStatus,
    "formId": q.sTargetFormId,
    "maker": q.sMakePerson,
    "priority": q.iPriority,
    "attempt": q.iAttempt,
}
_COUNT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Conditions:
    """All hold; empty ones do not restrict. ``user`` names makers."""

    status: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    form_id: list[str] = field(default_factory=list)
    op_type: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)
    conversation_id: str = ""
    preparation_id: str = ""
    created_from: datetime | None = None
    created_to: datetime | None = None


def query(
    connection: Connection, tenant: Tenant, wanted: Conditions, plan: Plan
) -> tuple[list[Operation], int | None]:
    """Up to ``plan.size + 1`` operations of the tenant, and their number (None above 10,000: not worth the count)."""
    among: list[tuple[ColumnElement[Any], list[Any]]] = [
        (q.sStatus, wanted.status),
        (q.iStatusCode, wanted.code),
        (q.sTargetFormId, wanted.form_id),
        (q.sOpType, wanted.op_type),
        (q.sMakePerson, wanted.user),
        (q.sConversationId, [wanted.conversation_id] if wanted.conversation_id else []),
        (q.sPreparationId, [wanted.preparation_id] if wanted.preparation_id else []),
    ]
    conditions: list[ColumnElement[bool]] = [column.in_(values) for column, values in among if values]
    if wanted.created_from is not None:
        conditions.append(q.tCreateDate >= wanted.created_from)
    if wanted.created_to is not None:
        conditions.append(q.tCreateDate < wanted.created_to)
    order = []
    for key in plan.sort:
        column = SORTABLE.get(key.field, q.sId)
        order.append(column.desc() if key.direction == "DESC" else column.asc())
    statement = _of(tenant).where(*conditions)
    rows = connection.execute(statement.order_by(*order).offset(plan.offset).limit(plan.size + 1))
    found = [to_operation(row) for row in rows]
    window = statement.with_only_columns(q.sId).limit(_COUNT_LIMIT + 1).subquery()
    total = connection.execute(select(func.count()).select_from(window)).scalar_one()
    return found, total if total <= _COUNT_LIMIT else None
