"""Lists of operations for people. Claiming and moving are ``operations``; here nothing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    case,
    false,
    func,
    literal_column,
    or_,
    select,
)

from staging.contracts.operation_query import OperationField, TodoGroup
from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.domain.ports import Route
from staging.domain.query import Plan
from staging.storage.rows import IS_PENDING, base_select, to_operation
from staging.storage.tables import op_queue

q = op_queue.c
_GROUPS: tuple[TodoGroup, ...] = get_args(TodoGroup)
"""As a literal: a partial index matches."""


@dataclass(frozen=True, slots=True)
class MakerLists:
    """One user's operations: waiting for them (103), under way, and ended."""

    waiting: list[Operation]
    running: list[Operation]
    recent: list[Operation]


def _within(tenant: Tenant) -> ColumnElement[bool]:
    return and_(q.sBrandsId == tenant.brands_id, q.sSubsidiaryId == tenant.subsidiary_id)


def _is(code: StatusCode) -> ColumnElement[bool]:
    same: ColumnElement[bool] = q.iStatusCode == literal_column(str(int(code)))
    return same


def of_maker(connection: Connection, tenant: Tenant, user_id: str, limit: int) -> MakerLists:
    """At most ``limit`` each."""
    mine = base_select().where(_within(tenant), q.sMakePerson == user_id)
    pending = mine.where(q.sStatus == Status.PENDING.value)
    waits = _is(StatusCode.WAITING_USER)

    def run(statement: Select[Any]) -> list[Operation]:
        return [to_operation(row) for row in connection.execute(statement.limit(limit))]

    return MakerLists(
        waiting=run(pending.where(waits).order_by(q.tCreateDate)),
        running=run(pending.where(~waits).order_by(q.tCreateDate.desc())),
        recent=run(mine.where(q.sStatus != Status.PENDING.value).order_by(q.tCreateDate.desc())),
    )


def awaiting_approval(connection: Connection, tenant: Tenant, user_id: str) -> list[Route]:
    """The kinds of operations among other users' at 104; which of them the user may approve is the caller's to ask."""
    columns = (q.sCommandType, q.sTargetFormId, q.sTargetModuleId, q.sTargetTable, q.sOpType)
    statement = select(*columns, q.bAutoExecute).distinct().where(_within(tenant), _for_approval(user_id))
    return [
        Route(command, form, module, table, op_type, bool(auto), requires_approval=True)
        for command, form, module, table, op_type, auto in connection.execute(statement)
    ]


def for_approval(
    connection: Connection, tenant: Tenant, user_id: str, kinds: Sequence[Route], limit: int
) -> list[Operation]:
    """Other users' operations at 104 of ``kinds`` (as ``awaiting_approval`` gave them), oldest first."""
    statement = base_select().where(_within(tenant), _for_approval(user_id), _of_kinds(kinds))
    return [to_operation(row) for row in connection.execute(statement.order_by(q.tCreateDate).limit(limit))]


def _for_approval(user_id: str) -> ColumnElement[bool]:
    return and_(IS_PENDING, _is(StatusCode.WAITING_APPROVAL), q.sMakePerson != user_id)


def _of_kinds(kinds: Sequence[Route]) -> ColumnElement[bool]:
    return or_(
        false(),
        *(
            and_(q.sCommandType == k.command_type, q.sTargetFormId == k.form_id, q.sOpType == k.op_type)
            for k in kinds
        ),
    )


# Public name → column; the only fields one may sort operations by (the unique id besides).
SORTABLE: Mapping[OperationField, ColumnElement[Any]] = {
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


@dataclass(frozen=True, slots=True)
class Todos:
    """``user_id``'s own operations, and those of ``kinds`` that wait for their approval; ``groups`` empty: all."""

    user_id: str
    kinds: Sequence[Route]
    groups: Sequence[TodoGroup]
    wanted: Conditions


def query(
    connection: Connection, tenant: Tenant, wanted: Conditions, plan: Plan
) -> tuple[list[Operation], int | None]:
    """Up to ``plan.size + 1`` operations of the tenant, and their number (None above 10,000: not worth the count)."""
    statement = base_select().where(_within(tenant), *_terms(wanted))
    rows, total = _paged(connection, statement, plan, SORTABLE)
    return [to_operation(row) for row in rows], total


def todos(
    connection: Connection, tenant: Tenant, mine: Todos, plan: Plan
) -> tuple[list[tuple[Operation, TodoGroup]], int | None]:
    """The same of one user's todos, each with its group."""
    approvals = and_(_for_approval(mine.user_id), _of_kinds(mine.kinds))
    group: ColumnElement[int] = case(
        (or_(and_(IS_PENDING, _is(StatusCode.WAITING_USER)), approvals), 0), (IS_PENDING, 1), else_=2
    )
    statement = base_select().where(
        _within(tenant), or_(q.sMakePerson == mine.user_id, approvals), *_terms(mine.wanted)
    )
    if mine.groups:
        statement = statement.where(group.in_([_GROUPS.index(one) for one in mine.groups]))
        if "recent" not in mine.groups:
            statement = statement.where(IS_PENDING)  # history is not even looked at
    grouped = statement.add_columns(group.label("todo_group"))
    rows, total = _paged(connection, grouped, plan, {**SORTABLE, "group": group})
    return [(to_operation(row), _GROUPS[row.todo_group]) for row in rows], total


def _terms(wanted: Conditions) -> list[ColumnElement[bool]]:
    among: list[tuple[ColumnElement[Any], list[Any]]] = [
        (q.sStatus, wanted.status),
        (q.iStatusCode, wanted.code),
        (q.sTargetFormId, wanted.form_id),
        (q.sOpType, wanted.op_type),
        (q.sMakePerson, wanted.user),
        (q.sConversationId, [wanted.conversation_id] if wanted.conversation_id else []),
        (q.sPreparationId, [wanted.preparation_id] if wanted.preparation_id else []),
    ]
    terms: list[ColumnElement[bool]] = [column.in_(values) for column, values in among if values]
    if wanted.created_from is not None:
        terms.append(q.tCreateDate >= wanted.created_from)
    if wanted.created_to is not None:
        terms.append(q.tCreateDate < wanted.created_to)
    return terms


def _paged(
    connection: Connection, statement: Select[Any], plan: Plan, columns: Mapping[Any, ColumnElement[Any]]
) -> tuple[list[Row[Any]], int | None]:
    order = []
    for key in plan.sort:
        column = columns.get(key.field, q.sId)
        order.append(column.desc() if key.direction == "DESC" else column.asc())
    rows = connection.execute(statement.order_by(*order).offset(plan.offset).limit(plan.size + 1)).all()
    window = statement.with_only_columns(q.sId).limit(_COUNT_LIMIT + 1).subquery()
    total = connection.execute(select(func.count()).select_from(window)).scalar_one()
    return list(rows), total if total <= _COUNT_LIMIT else None
