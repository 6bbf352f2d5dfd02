"""Keeps the tenant's stock while the seed writes documents, so that stock and documents agree to the last sheet."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from workers.erp.demo.schema import stock
from workers.erp.demo.seed.rows import Row, TenantRows

ZERO = Decimal(0)


@dataclass
class StockBook:
    """Rows of ``sto_stock`` by (warehouse, product)."""

    tenant: TenantRows
    places: dict[tuple[str, str], Row] = field(default_factory=dict)

    def _place(self, warehouse: str, product: str) -> Row:
        key = (warehouse, product)
        if key not in self.places:
            self.places[key] = self.tenant.row(
                stock.stock, "stk", sWarehouseId=warehouse, sProductId=product, dQuantity=ZERO, dReserved=ZERO
            )
        return self.places[key]

    def quantity(self, warehouse: str, product: str) -> Decimal:
        found: Decimal = self._place(warehouse, product)["dQuantity"]
        return found

    def free(self, warehouse: str, product: str) -> Decimal:
        """What is there and not promised to a sales order."""
        place = self._place(warehouse, product)
        free: Decimal = place["dQuantity"] - place["dReserved"]
        return free

    def add(self, warehouse: str, product: str, delta: Decimal) -> None:
        self._place(warehouse, product)["dQuantity"] += delta

    def reserve(self, warehouse: str, product: str, delta: Decimal) -> None:
        self._place(warehouse, product)["dReserved"] += delta
