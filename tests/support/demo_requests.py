"""Changes to the demo ERP, as requests to prepare; one for each way an operation can go."""

from __future__ import annotations

import secrets
from typing import Any


def word() -> str:
    return f"测试{secrets.token_hex(4)}"


def new_customer(**payload: Any) -> dict[str, Any]:
    """u-lin may: executed by a worker (100)."""
    return {
        "formId": "customer",
        "opType": "create",
        "payload": {"name": word(), "type": "direct", **payload},
    }


def new_supplier(**payload: Any) -> dict[str, Any]:
    """u-chen may: waits for u-qian's approval (104)."""
    return {"formId": "supplier", "opType": "create", "payload": {"name": word(), "type": "paper", **payload}}


def new_outsource_order(supplier: str, product: str, **payload: Any) -> dict[str, Any]:
    """u-chen may: waits for the user in the ERP's own form (103)."""
    line = {"product": product, "process": "覆膜", "quantity": 10, "price": "1.25"}
    return {
        "formId": "outsource_order",
        "opType": "create",
        "payload": {"supplier": supplier, "memo": word(), "lines": [line], **payload},
    }
