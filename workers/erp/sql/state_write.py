"""Examine, invalid and their reverse: flag, who and when in one guarded UPDATE whose row count decides."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form, Stamp
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.context import WriteContext
from workers.erp.sql.states import REQUIRED, Required, check, guard, state_columns


def set_state(ctx: WriteContext, form: Form, master: RowTable, key: str, op: OpType) -> None:
    """Move the record's state as ``op`` says (delete: to invalid). The row stays locked until the transaction ends.

    Raises record_not_found or state_conflict if no row was in the required state.
    """
    stamp = _stamp(form, op)
    on = op in (OpType.EXAMINE, OpType.INVALID, OpType.DELETE)
    guarded_update(ctx, form, master, key, REQUIRED[op], stamped(ctx, stamp, on=on))


def stamped(ctx: WriteContext, stamp: Stamp | None, *, on: bool) -> dict[str, Any]:
    """Column → value of a state flag with who and when; empty for a state the form does not have."""
    if stamp is None:
        return {}
    values: dict[str, Any] = {stamp.column: int(on)}
    if stamp.by:
        values[stamp.by] = ctx.actor.user_id if on else None
    if stamp.at:
        values[stamp.at] = ctx.now_utc if on else None
    return values


def guarded_update(
    ctx: WriteContext, form: Form, master: RowTable, key: str, required: Required, values: dict[str, Any]
) -> None:
    """UPDATE of one record that names tenant and required state; exactly one row, or the reason why not."""
    of_record = [master.key == key, *master.of_tenant(ctx.tenant)]
    statement = update(master.table).where(*of_record, *guard(form, master, required)).values(values)
    if ctx.connection.execute(statement).rowcount == 1:
        return
    flags = state_columns(form)
    row = ctx.connection.execute(select(master.key, *map(master.named, flags)).where(*of_record)).first()
    if row is None:
        raise Refused(ErrorCode.RECORD_NOT_FOUND, {"record": key})
    check(form, dict(zip(flags, row[1:], strict=True)), required)
    raise Refused(ErrorCode.STATE_CONFLICT, {"form": form.id})


def _stamp(form: Form, op: OpType) -> Stamp:
    examined = op in (OpType.EXAMINE, OpType.CANCEL_EXAMINE)
    stamp = form.states.examined if examined else form.states.invalid
    if stamp is None:
        raise Refused(
            ErrorCode.FORBIDDEN,
            {"form": form.id},
            text={
                "zh": f"{form.label.zh}没有{'审核' if examined else '作废'}状态",
                "en": f"{form.label.en} has no such state",
            },
        )
    return stamp
