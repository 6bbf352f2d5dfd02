"""Rows of ``ai_op_queue`` for tests: as our confirm writes them, and as a foreign program's plain SQL does."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from staging.contracts.status import StatusCode
from staging.domain.identity import Tenant, new_id
from staging.domain.operation import NewOperation

TENANT = Tenant("B001", "S01")


def new_operation(**changes: Any) -> NewOperation:
    """A confirmed row; ``changes`` override fields."""
    op_id = changes.pop("id", new_id())
    values: dict[str, Any] = {
        "id": op_id,
        "tenant": TENANT,
        "maker": "u-lin",
        "op_type": "create",
        "command_type": "erp.quotation.create",
        "form_id": "quotation",
        "module_id": "erp",
        "target_table": "quo_quotationmaster",
        "target_bill_id": "",
        "payload_json": '{"title":"名片"}',
        "source_ref_json": None,
        "auto_execute": True,
        "needs_approval": False,
        "allow_duplicate": False,
        "code": StatusCode.SUBMITTED,
        "idempotency_key": op_id,
        "payload_hash": "sha256:1",
        "target_version": "",
        "pins_json": "{}",
        "preview_json": "{}",
        "snapshot_hash": "",
        "preparation_id": op_id,
        "confirmed_by": "u-lin",
        "conversation_id": "c-1",
        "trace_id": "",
        "locale": "zh",
        "max_attempts": 3,
        "expires_in_s": None,
        "not_before": None,
    }
    return NewOperation(**{**values, **changes})


def quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


def foreign_insert(connection: Connection, **changes: Any) -> str:
    """INSERT as another program would: the starred columns and bAutoExecute, nothing else. Returns the id."""
    values = {
        "sId": new_id(),
        "sBrandsId": "B001",
        "sSubsidiaryId": "S01",
        "sMakePerson": "u-lin",
        "sOpType": "create",
        "sTargetFormId": "quotation",
        "sPayload": "{}",
        "bAutoExecute": 1,
        "sStatus": "pending",
        "iStatusCode": 100,
        **changes,
    }
    columns = ", ".join(quoted(connection, name) for name in values)
    places = ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO ai_op_queue ({columns}) VALUES ({places})"), values)
    return str(values["sId"])
