"""Makes the business change of one operation of a form, for all eight operation types, inside the caller's transaction.

The caller (the adapter) has checked permission and pins in the same transaction and normalized the payload. What is
checked here again are the things that another transaction may have changed a moment ago: state, quantities, stock.

Order in which rows are locked: the record, its source record, source lines by key, the natural key's guard
(``duplicates``), stock by product and warehouse, the number counter last. Database errors (deadlock, lock timeout) come
out as they are; the whole transaction may run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from sqlalchemy import Connection, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue, Form
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused
from staging.domain.ports import Execution, Outcome
from workers.erp.sql.catalogue_tables import tables_of
from workers.erp.sql.context import WriteContext
from workers.erp.sql.generate import generate_from, read_source, take
from workers.erp.sql.record_write import (
    Created,
    Links,
    New,
    create_record,
    create_records,
    delete_record,
    give_back_taken,
    update_record,
)
from workers.erp.sql.referenced_by import check_not_referenced
from workers.erp.sql.state_write import set_state
from workers.erp.sql.stock import Move, examine_moves, move_stock

_DONE: Mapping[OpType, tuple[str, str]] = {
    OpType.CREATE: ("已创建", "created"),
    OpType.UPDATE: ("已修改", "updated"),
    OpType.DELETE: ("已删除", "deleted"),
    OpType.EXAMINE: ("已审核", "examined"),
    OpType.CANCEL_EXAMINE: ("已取消审核", "no longer examined"),
    OpType.INVALID: ("已作废", "made invalid"),
    OpType.CANCEL_INVALID: ("已取消作废", "valid again"),
    OpType.GENERATE: ("已生成", "generated"),
}


class Plan(Protocol):
    """What to do, normalized: a ``Prepared`` is one, and so is an ``Execution`` whose payload is normalized already.

    ``source_ref`` (generate): ``{"formId", "record": key, "lines": [{"id": key, …}]}``; ``payload`` then is the whole
    target, its lines one per chosen source line in the same order.
    """

    @property
    def payload(self) -> dict[str, Any]: ...
    @property
    def target_bill_id(self) -> str: ...
    @property
    def source_ref(self) -> dict[str, Any] | None: ...


def apply_form_operation(
    connection: Connection,
    catalogue: Catalogue,
    form: Form,
    execution: Execution,
    *,
    plan: Plan,
    now_utc: datetime,
    today: date,
) -> Outcome:
    """``apply_form_operations`` of one."""
    (outcome,) = apply_form_operations(
        connection, catalogue, form, [(execution, plan)], now_utc=now_utc, today=today
    )
    return outcome


def apply_form_operations(
    connection: Connection,
    catalogue: Catalogue,
    form: Form,
    plans: Sequence[tuple[Execution, Plan]],
    *,
    now_utc: datetime,
    today: date,
) -> list[Outcome]:
    """Make the changes of executions of one tenant and operation type, each by its plan and actor; creates together, in
    few statements. No commit.

    ``now_utc`` goes into stamps, ``today`` (the tenant's local date) into document numbers. Raises ``OpstageError``:
    record_not_found, state_conflict, version_conflict, business_rule, forbidden for a type without policy.
    """
    op = _op_type(form, plans[0][0].route.op_type)
    tables = tables_of(catalogue)
    each = [
        (WriteContext(connection, tables, execution.actor, now_utc, today), plan) for execution, plan in plans
    ]
    if op is OpType.CREATE:
        created = create_records(form, [New(ctx, plan.payload) for ctx, plan in each])
        return [_created(form, op, one) for one in created]
    return [_apply(ctx, form, op, plan) for ctx, plan in each]


def _apply(ctx: WriteContext, form: Form, op: OpType, plan: Plan) -> Outcome:
    match op:
        case OpType.GENERATE:
            return _generated(ctx, form, plan)
        case OpType.UPDATE:
            update_record(ctx, form, plan.target_bill_id, plan.payload)
        case OpType.DELETE:
            number = _number(ctx, form, plan.target_bill_id)
            delete_record(ctx, form, plan.target_bill_id, physical=form.operations[op].physical)
            return _outcome(form, op, plan.target_bill_id, number)
        case _:
            _change_state(ctx, form, op, plan.target_bill_id)
    return _outcome(form, op, plan.target_bill_id, _number(ctx, form, plan.target_bill_id))


def _op_type(form: Form, op_type: str) -> OpType:
    op = next((o for o in OpType if o == op_type), None)
    if op is None or op not in form.operations:
        raise Refused(ErrorCode.FORBIDDEN, {"form": form.id, "op": op_type})
    return op


def _generated(ctx: WriteContext, form: Form, plan: Plan) -> Outcome:
    source_ref = plan.source_ref or {}
    generate = generate_from(form, str(source_ref.get("formId", "")))
    source = read_source(ctx.connection, ctx.tables, ctx.tenant, generate, source_ref, lock=True)
    lines = plan.payload.get(generate.target_child) or ()
    if len(lines) != len(source.lines):
        raise Refused(ErrorCode.FIELD_INVALID, {"field": generate.target_child})
    take(ctx, source, [line[generate.quantity] for line in lines])
    links = Links(
        master={generate.source_bill: source.key} if generate.source_bill else {},
        child=generate.target_child,
        lines=[{generate.source_line: line.key} if generate.source_line else {} for line in source.lines],
    )
    return _created(form, OpType.GENERATE, create_record(ctx, form, plan.payload, links=links))


def _change_state(ctx: WriteContext, form: Form, op: OpType, key: str) -> None:
    set_state(ctx, form, ctx.tables.master(form.id), key, op)
    if op in (OpType.CANCEL_EXAMINE, OpType.INVALID):
        check_not_referenced(ctx.connection, ctx.tables, ctx.tenant, form, key)
    if op in (OpType.EXAMINE, OpType.CANCEL_EXAMINE):
        move_stock(ctx, form, stock_moves(ctx, form, op, key))
    else:
        give_back_taken(ctx, form, key, -1 if op is OpType.INVALID else 1)


def stock_moves(ctx: WriteContext, form: Form, op: OpType, key: str) -> list[Move]:
    """The stock effect of examining a record's lines, or its reverse; none for other types and forms without one."""
    effect = form.stock
    if effect is None or op not in (OpType.EXAMINE, OpType.CANCEL_EXAMINE):
        return []
    table = ctx.tables.master(form.id).children[effect.child]
    if table.parent is None:
        raise LookupError(f"{form.id}.{effect.child} has no parent column")
    columns = [table.column(n).label(n) for n in (effect.product, effect.warehouse, effect.quantity)]
    if effect.fulfils_column:
        columns.append(table.named(effect.fulfils_column).label(effect.fulfils_column))
    statement = select(*columns).where(table.parent == key, *table.of_tenant(ctx.tenant))
    lines = [dict(row) for row in ctx.connection.execute(statement).mappings()]
    return examine_moves(effect, lines, 1 if op is OpType.EXAMINE else -1)


def _number(ctx: WriteContext, form: Form, key: str) -> str | None:
    if form.number is None:
        return None
    master = ctx.tables.master(form.id)
    statement = select(master.column(form.number.field)).where(
        master.key == key, *master.of_tenant(ctx.tenant)
    )
    number = ctx.connection.execute(statement).scalar()
    return None if number is None else str(number)


def _created(form: Form, op: OpType, created: Created) -> Outcome:
    return _outcome(form, op, created.key, created.number)


def _outcome(form: Form, op: OpType, key: str, number: str | None) -> Outcome:
    zh, en = _DONE[op]
    named = f" {number}" if number else ""
    result = {"formId": form.id, "opType": op.value, "billId": key}
    if number:
        result["number"] = number
    return Outcome(key, {"zh": f"{zh}{form.label.zh}{named}", "en": f"{form.label.en}{named} {en}"}, result)
