"""The purchase order as a handler that places several at once: a statement each for counter, masters, lines, budget."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from staging.domain.ports import Outcome
from tests.benchmarks.erp.handler import PlaceOrder, placed
from tests.benchmarks.reference.body import NoBudget
from workers.erp.command import CommandContext, CommandPlan

_TENANT = " WHERE brands = %s AND subsidiary = %s"
_COUNTER = "UPDATE po_counter SET last_no = last_no + %s" + _TENANT
_COUNTED = "SELECT last_no FROM po_counter" + _TENANT
_BUDGET = (
    "UPDATE po_budget SET used_cents = used_cents + %s" + _TENANT + " AND used_cents + %s <= limit_cents"
)
_MASTER = "po_master (id, brands, subsidiary, bill_no, supplier, memo, total, maker)"
_LINE = "po_line (id, master_id, line_no, product, quantity, price, amount)"


class PlaceOrders(PlaceOrder):
    """Handler of ``erp.po.placeAll``."""

    def execute_all(self, planned: Sequence[tuple[CommandContext, CommandPlan]]) -> list[Outcome]:
        first, _ = planned[0]
        tenant = (first.actor.tenant.brands_id, first.actor.tenant.subsidiary_id)
        statements = _Statements(first.connection.dialect.name, first.connection.connection.cursor())
        try:
            last = statements.count(len(planned), tenant)
            masters: list[Sequence[Any]] = []
            lines: list[Sequence[Any]] = []
            for number, (context, plan) in enumerate(planned, last - len(planned) + 1):
                key, order = secrets.token_urlsafe(18), plan.payload
                words = (order["supplier"], order["memo"], order["total"])
                masters.append((key, *tenant, f"PO{number:08d}", *words, context.actor.user_id))
                for line_no, one in enumerate(order["lines"], 1):
                    amounts = (one["quantity"], one["price"], one["amount"])
                    lines.append((secrets.token_urlsafe(18), key, line_no, one["product"], *amounts))
            statements.insert(_MASTER, masters)
            statements.insert(_LINE, lines)
            statements.spend(sum(int(row[6].replace(".", "")) for row in masters), tenant)
        finally:
            statements.cursor.close()
        return [placed(row[0], row[3]) for row in masters]


class _Statements:
    """On a DBAPI cursor of psycopg, PyMySQL or sqlite3 (``dialect``: SQLAlchemy's name)."""

    def __init__(self, dialect: str, cursor: Any) -> None:
        self._dialect, self.cursor = dialect, cursor

    def count(self, by: int, tenant: tuple[str, str]) -> int:
        """Move the tenant's counter; the last number taken."""
        if self._dialect in (
            "mysql",
            "mariadb",
        ):  # no UPDATE … RETURNING there; the row is ours from the UPDATE on
            self._execute(_COUNTER, (by, *tenant))
            self._execute(_COUNTED, tenant)
        else:
            self._execute(_COUNTER + " RETURNING last_no", (by, *tenant))
        return int(self.cursor.fetchone()[0])

    def insert(self, into: str, rows: Sequence[Sequence[Any]]) -> None:
        """``into``: a table and its columns."""
        if self._dialect == "postgresql":
            with self.cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            values = f"INSERT INTO {into} VALUES ({', '.join(['%s'] * len(rows[0]))})"
            self.cursor.executemany(self._sql(values), rows)

    def spend(self, cents: int, tenant: tuple[str, str]) -> None:
        """Raises ``NoBudget`` unless it is enough for all."""
        self._execute(_BUDGET, (cents, *tenant, cents))
        if self.cursor.rowcount != 1:
            raise NoBudget(tenant[0])

    def _execute(self, sql: str, values: Sequence[Any]) -> None:
        self.cursor.execute(self._sql(sql), values)

    def _sql(self, sql: str) -> str:
        return sql.replace("%s", "?") if self._dialect == "sqlite" else sql
