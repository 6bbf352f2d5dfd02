"""A program that knows nothing of Opstage but the table: plain SQL, the starred columns and ``bAutoExecute``."""

from __future__ import annotations

from sqlalchemy import Connection, text

COLUMNS = (
    "sId",
    "sBrandsId",
    "sSubsidiaryId",
    "sMakePerson",
    "sOpType",
    "sTargetFormId",
    "sTargetBillId",
    "sPayload",
    "bAutoExecute",
    "sStatus",
    "iStatusCode",
)


def insert_row(connection: Connection, **values: str | int) -> str:
    """INSERT one row of ``COLUMNS`` into ai_op_queue and return the statement; the caller commits."""
    quote = connection.dialect.identifier_preparer.quote
    row = {"sStatus": "pending", "iStatusCode": 100, "bAutoExecute": 1, "sTargetBillId": "", **values}
    names = ", ".join(quote(name) for name in COLUMNS)
    places = ", ".join(f":{name}" for name in COLUMNS)
    statement = f"INSERT INTO ai_op_queue ({names}) VALUES ({places})"  # noqa: S608 - names are the constants above
    connection.execute(text(statement), {name: row[name] for name in COLUMNS})
    return statement
