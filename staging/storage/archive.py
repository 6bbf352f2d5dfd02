"""Operations that were moved to the archive: read as before, never written. ``archiving`` moves them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam

from staging.domain.identity import Tenant
from staging.domain.operation import Operation
from staging.storage.rows import base_select, to_operation
from staging.storage.tables import op_queue_archive

_a = op_queue_archive.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_BASE = base_select(op_queue_archive).add_columns(_a.tArchiveDate)
_BY_IDS = _BASE.where(_a.sId.in_(_IDS))
_BY_PREPARATION = _BASE.where(
    _a.sPreparationId == bindparam("preparation"),
    _a.sBrandsId == bindparam("b"),
    _a.sSubsidiaryId == bindparam("s"),
).order_by(_a.iFlowStep, _a.sId)


def by_ids(connection: Connection, ids: Sequence[str]) -> list[Operation]:
    """Archived operations among ``ids``, in no particular order."""
    return _read(connection, _BY_IDS, {"ids": list(ids)}) if ids else []


def get(connection: Connection, tenant: Tenant, op_id: str) -> Operation | None:
    """One archived operation of the tenant, or None."""
    found = by_ids(connection, [op_id])
    return found[0] if found and found[0].tenant == tenant else None


def by_preparation(connection: Connection, tenant: Tenant, preparation_id: str) -> list[Operation]:
    """What of a confirmed preparation has been archived, in the order of its items."""
    wanted = {"preparation": preparation_id, "b": tenant.brands_id, "s": tenant.subsidiary_id}
    return _read(connection, _BY_PREPARATION, wanted)


def _read(connection: Connection, statement: Select[Any], values: dict[str, Any]) -> list[Operation]:
    return [
        replace(to_operation(row), archived_at=row.tArchiveDate)
        for row in connection.execute(statement, values)
    ]
