"""The SQL of the purchase order, for a DBAPI cursor of psycopg, PyMySQL or sqlite3. Everybody's body but the form's.

One statement each: counter, master, three lines, budget with its check, ledger. The caller owns the transaction.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any


class NoBudget(Exception):
    """The tenant's budget does not allow the order; the transaction is to be rolled back."""


@dataclass(frozen=True, slots=True)
class Statements:
    """``ledger`` has the columns of the product's own ledger."""

    counter: str
    master: str
    lines: str
    budget: str
    ledger: str
    seen: str
    returning: bool = True


_PG = Statements(
    counter="UPDATE po_counter SET last_no = last_no + 1 WHERE brands = %s AND subsidiary = %s RETURNING last_no",
    master="INSERT INTO po_master (id, brands, subsidiary, bill_no, supplier, memo, total, maker)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
    lines="INSERT INTO po_line (id, master_id, line_no, product, quantity, price, amount) VALUES "
    + ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * 3),
    budget="UPDATE po_budget SET used_cents = used_cents + %s"
    " WHERE brands = %s AND subsidiary = %s AND used_cents + %s <= limit_cents",
    ledger='INSERT INTO ai_op_ledger ("sIdempotencyKey", "sBrandsId", "sSubsidiaryId", "sOpId", "sCommandType",'
    ' "sPayloadHash", "sResult") VALUES (%s, %s, %s, %s, %s, %s, %s)',
    seen='SELECT "sResult" FROM ai_op_ledger'
    ' WHERE "sIdempotencyKey" = %s AND "sBrandsId" = %s AND "sSubsidiaryId" = %s',
)


def _like_pg(change: Any, **other: Any) -> Statements:
    names = ("counter", "master", "lines", "budget", "ledger", "seen")
    return Statements(**{name: change(getattr(_PG, name)) for name in names} | other)


STATEMENTS = {
    "postgresql": _PG,
    "sqlite": _like_pg(lambda sql: sql.replace("%s", "?")),
    # MariaDB has no UPDATE … RETURNING; LAST_INSERT_ID(expr) brings the value back with the statement's own answer.
    "mariadb": _like_pg(
        lambda sql: sql.replace('"', ""),
        counter="UPDATE po_counter SET last_no = LAST_INSERT_ID(last_no + 1) WHERE brands = %s AND subsidiary = %s",
        returning=False,
    ),
}


Steps = Generator[tuple[str, Sequence[Any], str], Any, Any]
"""Statements to execute in turn: (SQL, values, what is wanted back: "value", "count" or nothing)."""


def business(sql: Statements, brands: str, subsidiary: str, user: str, payload: dict[str, Any]) -> Steps:
    """Write the order; ends with its key and its number. Raises ``NoBudget``."""
    tenant = (brands, subsidiary)
    last = yield sql.counter, tenant, "value"
    bill_no, key = f"PO{last:08d}", secrets.token_urlsafe(18)
    yield (
        sql.master,
        (key, *tenant, bill_no, payload["supplier"], payload["memo"], payload["total"], user),
        "",
    )
    lines: list[Any] = []
    for number, one in enumerate(payload["lines"], 1):
        amounts = (one["quantity"], one["price"], one["amount"])
        lines += (secrets.token_urlsafe(18), key, number, one["product"], *amounts)
    yield sql.lines, lines, ""
    cents = int(payload["total"].replace(".", ""))
    if (yield sql.budget, (cents, *tenant, cents), "count") != 1:
        raise NoBudget(brands)
    return key, bill_no


def whole(
    sql: Statements, op_id: str, brands: str, subsidiary: str, user: str, payload: dict[str, Any]
) -> Steps:
    """``business`` and the ledger row; ends with the number."""
    key, bill_no = yield from business(sql, brands, subsidiary, user, payload)
    result = json.dumps({"billId": key, "number": bill_no})
    yield sql.ledger, (op_id, brands, subsidiary, op_id, "po", "", result), ""
    return bill_no


def once(
    sql: Statements, op_id: str, brands: str, subsidiary: str, user: str, payload: dict[str, Any]
) -> Steps:
    """``whole``, unless the ledger has it already: for queues that deliver at least once. Ends with the number."""
    seen = yield sql.seen, (op_id, brands, subsidiary), "value"
    if seen is not None:
        return json.loads(seen)["number"]
    return (yield from whole(sql, op_id, brands, subsidiary, user, payload))


def play(cursor: Any, steps: Steps, *, returning: bool = True) -> Any:
    """Execute ``steps`` on a DBAPI cursor; returns what they end with. ``returning``: as in ``Statements``."""
    answer = None
    while True:
        try:
            statement, values, wanted = steps.send(answer)
        except StopIteration as end:
            return end.value
        cursor.execute(statement, values)
        answer = cursor.rowcount if wanted == "count" else None
        if wanted == "value":
            row = cursor.fetchone() if returning else (cursor.lastrowid,)
            answer = row[0] if row else None


def done_message(op_id: str, bill_no: str) -> str:
    """What is published after the commit."""
    return json.dumps({"opId": op_id, "status": "success", "resultBillId": bill_no})


def channel(op_id: str) -> str:
    return f"ai:op:id:{op_id}"
