"""How a row of ``ai_op_queue``, or of its archive, becomes an ``Operation``; codes in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Row, Select, func, literal_column, null, select

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.storage.tables import op_queue

q = op_queue.c

# field of Operation ← column; the only mapping of the two.
_FIELDS: dict[str, Column[Any]] = {
    "id": q.sId,
    "op_type": q.sOpType,
    "command_type": q.sCommandType,
    "form_id": q.sTargetFormId,
    "module_id": q.sTargetModuleId,
    "target_table": q.sTargetTable,
    "target_bill_id": q.sTargetBillId,
    "payload_json": q.sPayload,
    "source_ref_json": q.sSourceRef,
    "auto_execute": q.bAutoExecute,
    "status": q.sStatus,
    "code": q.iStatusCode,
    "seq": q.iSeq,
    "result_bill_id": q.sResultBillId,
    "result_message": q.sResultMsg,
    "error_message": q.sErrorMsg,
    "error_code": q.sErrorCode,
    "error_detail_json": q.jErrorDetail,
    "created_at": q.tCreateDate,
    "confirmed_at": q.tConfirmDate,
    "executed_at": q.tExecutedDate,
    "expires_at": q.tExpireAt,
    "not_before": q.tNotBefore,
    "idempotency_key": q.sIdempotencyKey,
    "payload_hash": q.sPayloadHash,
    "target_version": q.sTargetVersion,
    "conversation_id": q.sConversationId,
    "trace_id": q.sTraceId,
    "flow_step": q.iFlowStep,
    "priority": q.iPriority,
    "attempt": q.iAttempt,
    "max_attempts": q.iMaxAttempts,
    "lease_token": q.sLeaseToken,
    "lease_until": q.tLeaseUntil,
    "preparation_id": q.sPreparationId,
    "confirmed_by": q.sConfirmPerson,
    "approved_by": q.sApprovePerson,
    "needs_approval": q.bNeedsApproval,
    "allow_duplicate": q.bAllowDuplicate,
    "pins_json": q.jPins,
    "preview_json": q.jPreview,
    "snapshot_hash": q.sSnapshotHash,
    "seal": q.sSeal,
    "locale": q.sLocale,
}
_TENANT_AND_MAKER = [q.sBrandsId, q.sSubsidiaryId, q.sMakePerson]
_BLANK = {
    "command_type",
    "form_id",
    "module_id",
    "target_table",
    "target_bill_id",
    "error_code",
    "payload_hash",
} | {
    "target_version",
    "conversation_id",
    "trace_id",
    "snapshot_hash",
    "seal",
    "payload_json",
}


LONG_FIELDS = frozenset({"payload_json", "source_ref_json", "pins_json", "preview_json"})


def base_select(table: FromClause = op_queue, *, without: Collection[str] = ()) -> Select[Any]:
    """SELECT from the queue, its archive, or what has their columns, that ``to_operation`` understands; the fields
    ``without`` are left empty."""
    fields = [
        (null() if name in without else table.c[column.name]).label(name) for name, column in _FIELDS.items()
    ]
    return select(*fields, *(table.c[column.name] for column in _TENANT_AND_MAKER))


def to_operation(row: Row[Any]) -> Operation:
    """The domain object of a row of ``base_select``, columns added behind its own or not; NULLs that an adopted table
    may hold become the neutral value."""
    values = dict(zip(_FIELDS, row, strict=False))  # by place: by name costs a look-up each
    for name in _BLANK:
        values[name] = values[name] or ""
    for name in ("auto_execute", "needs_approval", "allow_duplicate"):
        values[name] = bool(values[name])
    for name in ("seq", "attempt", "priority", "flow_step"):
        values[name] = values[name] or 0
    values["max_attempts"] = values["max_attempts"] or 1
    values["idempotency_key"] = values["idempotency_key"] or values["id"]
    values["locale"] = values["locale"] or "zh"
    return Operation(
        tenant=Tenant(row.sBrandsId or "", row.sSubsidiaryId or ""), maker=row.sMakePerson or "", **values
    )


# Spelled as a literal so that the partial index of open rows matches (tables.py).
IS_PENDING: ColumnElement[bool] = q.sStatus == literal_column(f"'{Status.PENDING.value}'")


def code_is(code: StatusCode) -> ColumnElement[bool]:
    """Spelled as a literal so that partial indexes match (tables.py)."""
    same: ColumnElement[bool] = q.iStatusCode == literal_column(str(int(code)))
    return same


def code_by_key(code: StatusCode) -> ColumnElement[bool]:
    """``code_is`` for rows that are named by their key, spelled so that the planner takes no index of codes: where
    statistics are young such a one looks empty, and all of the backlog would be read for a few rows."""
    same: ColumnElement[bool] = func.coalesce(q.iStatusCode, 0) == int(code)
    return same


def status_by_key(status: Status) -> ColumnElement[bool]:
    """The same for the status."""
    same: ColumnElement[bool] = func.coalesce(q.sStatus, "") == status.value
    return same


def code_in(codes: Sequence[StatusCode]) -> ColumnElement[bool]:
    among: ColumnElement[bool] = q.iStatusCode.in_([literal_column(str(int(c))) for c in codes])
    return among
