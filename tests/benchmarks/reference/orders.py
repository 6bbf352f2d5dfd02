"""What is ordered: purchase orders of 20 tenants, each payload exactly ``PAYLOAD_BYTES`` of JSON."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

PAYLOAD_BYTES = 689
SUBSIDIARY, USER = "S01", "u-lin"
TOTAL = Decimal("158.25")
_LINES = (
    ("P-1001", "3.00", "12.50", "37.50"),
    ("P-2002", "10.00", "9.90", "99.00"),
    ("P-3003", "1.00", "21.75", "21.75"),
)


@dataclass(frozen=True, slots=True)
class Order:
    """One operation: ``id`` is its idempotency key, ``payload`` JSON text."""

    id: str
    brands: str
    payload: str

    @property
    def shard(self) -> int:
        return int(self.brands[1:])


def brands_of(number: int) -> str:
    return f"B{number:04d}"


def payload_of(seq: int) -> dict[str, Any]:
    """Normalized as a confirm would leave it: amounts worked out, decimals as exact strings."""
    payload: dict[str, Any] = {
        "supplier": f"Supplier {seq % 97:02d}",
        "memo": "",
        "total": str(TOTAL),
        "lines": [
            {"product": product, "quantity": quantity, "price": price, "amount": amount}
            for product, quantity, price, amount in _LINES
        ],
    }
    memo = f"order {seq} "
    payload["memo"] = memo + "x" * (PAYLOAD_BYTES - len(_dump(payload)) - len(memo))
    return payload


def orders(count: int, tenants: int = 20) -> list[Order]:
    """``count`` fresh orders, tenants in turn."""
    return [
        Order(secrets.token_urlsafe(18), brands_of(n % tenants), _dump(payload_of(n))) for n in range(count)
    ]


def _dump(payload: dict[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
