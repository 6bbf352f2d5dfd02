"""What must be true after a run, whoever did it: plain SQL on the ERP's tables. A wrong outcome is no measurement."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, text

from tests.benchmarks.reference.orders import TOTAL

SEED = "seed"  # command type of history


def problems(connection: Connection, expected: Collection[str], *, counter: str = "own") -> list[str]:
    """One sentence for each broken promise; empty when all are kept.

    ``expected``: idempotency keys. ``counter``: "own" for ``po_counter``, "product" for ``ai_op_number``.
    """
    found: list[str] = []
    rows = connection.execute(
        text(
            names(
                connection,
                'SELECT "sIdempotencyKey", count(*) FROM ai_op_ledger WHERE "sCommandType" <> \'seed\' GROUP BY 1',
            )
        )
    ).all()
    keys = {row[0]: row[1] for row in rows}
    wanted = set(expected)
    if keys.keys() != wanted:
        found.append(f"ledger: {len(wanted - keys.keys())} missing, {len(keys.keys() - wanted)} too many")
    if any(count != 1 for count in keys.values()):
        found.append("ledger: an operation is there more than once")
    orders = _counts(
        connection, "SELECT brands, count(*) FROM po_master WHERE maker <> 'seed' GROUP BY brands"
    )
    if sum(orders.values()) != len(wanted):
        found.append(f"{sum(orders.values())} orders for {len(wanted)} operations")
    counted = _counts(connection, _COUNTERS[counter])
    if {k: v for k, v in counted.items() if v} != orders:
        found.append(f"document counters {counted} are not the numbers of orders {orders}")
    spent = _counts(connection, "SELECT brands, used_cents FROM po_budget WHERE used_cents > 0")
    cents = int(TOTAL * 100)
    if spent != {brands: count * cents for brands, count in orders.items()}:
        found.append(f"budgets {spent} are not {cents} cents an order")
    lines = connection.execute(
        text(
            "SELECT count(*) FROM (SELECT m.id FROM po_master m JOIN po_line l ON l.master_id = m.id"
            " WHERE m.maker <> 'seed' GROUP BY m.id HAVING count(*) = 3) whole_orders"
        )
    ).scalar_one()
    if lines != sum(orders.values()):
        found.append(f"only {lines} of {sum(orders.values())} orders have three lines")
    return found


_KEYS = """SELECT "sIdempotencyKey", count(*) FROM ai_op_ledger WHERE "sCommandType" <> 'seed' GROUP BY 1"""
_COUNTERS = {
    "own": "SELECT brands, last_no FROM po_counter",
    "product": 'SELECT "sBrandsId", "iLast" FROM ai_op_number',
}


def _counts(connection: Connection, statement: str) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in connection.execute(text(names(connection, statement)))}


def names(connection: Connection, statement: str) -> str:
    """``statement`` with its double-quoted names as the database at hand takes them."""
    return statement.replace('"', "") if connection.dialect.name in ("mysql", "mariadb") else statement
