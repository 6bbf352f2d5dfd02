"""The seal a confirm puts on its row: a MAC over what was confirmed, so that a worker can tell our own rows, already
validated and shown to a person, from rows of foreign SQL. Without a key a row is simply treated as foreign: everything
is validated again. With one, a row that claims a confirm of ours and does not bear its seal was altered since.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from staging.domain.canonical import canonical_json
from staging.domain.intake import load_json
from staging.domain.operation import NewOperation, Operation


def seal(operation: NewOperation | Operation, key: str) -> str:
    """``hmac-sha256:<hex>`` over identity, tenant, maker, command, target, payload, pins and whether somebody has to
    approve; "" without a key."""
    if not key:
        return ""
    said = [
        operation.id,
        operation.tenant.brands_id,
        operation.tenant.subsidiary_id,
        operation.maker,
        operation.command_type,
        operation.form_id,
        operation.op_type,
        operation.target_bill_id,
        operation.idempotency_key,
        operation.payload_hash,
        operation.target_version,
        _parsed(operation.source_ref_json),  # by value: a json column of an adopted table writes it anew
        _parsed(operation.pins_json),
        operation.preparation_id or "",
        operation.confirmed_by or "",
        "1" if operation.allow_duplicate else "0",
        "1" if operation.needs_approval else "0",
    ]
    mac = hmac.new(key.encode(), canonical_json(said).encode(), hashlib.sha256)
    return f"hmac-sha256:{mac.hexdigest()}"


def _parsed(text: str | None) -> Any:
    return load_json(text) if text else None


def is_sealed(operation: Operation, key: str) -> bool:
    """True if this row is what a confirm holding ``key`` wrote."""
    return bool(operation.seal and key) and hmac.compare_digest(
        operation.seal.encode(), seal(operation, key).encode()
    )


def claims_confirm(operation: Operation) -> bool:
    """True if this row says that a person confirmed it here; unless it ``is_sealed`` as well, it was altered since."""
    return bool(operation.seal or operation.confirmed_by)
