"""What the documents of one tenant's year share: whom they may name, what lies in stock, what is still open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from workers.erp.demo.seed.masters import Masters
from workers.erp.demo.seed.rows import Row, TenantRows
from workers.erp.demo.seed.stockbook import StockBook

VAT = Decimal("0.13")
ZERO = Decimal(0)


@dataclass
class Document:
    """A master row with its line rows."""

    row: Row
    lines: list[Row]


@dataclass
class Year:
    """``staff``: who makes documents, by department."""

    tenant: TenantRows
    masters: Masters
    staff: Mapping[str, str]
    book: StockBook
    requisitions: list[Document] = field(default_factory=list)
    orders: list[Document] = field(default_factory=list)
    sales: list[Document] = field(default_factory=list)

    def chance(self, percent: int) -> bool:
        return self.tenant.random.randrange(100) < percent

    def hundreds(self, low: int, high: int) -> Decimal:
        """A quantity of ``low`` to ``high`` hundreds."""
        return Decimal(self.tenant.random.randrange(low, high) * 100)

    def settle(self, document: Row, examined_percent: int = 75) -> None:
        """Most documents are examined, a few are invalid, the rest wait."""
        if self.chance(examined_percent):
            self.tenant.examine(document, self.staff["manager"])
        elif self.chance(15):
            self.tenant.invalidate(document, document["sMakePerson"])
