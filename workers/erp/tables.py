"""What Opstage keeps in the ERP's database: the ledger, its fence and the number counters.

The idempotency key comes first in the ledger's primary key, where twins meet; keys are unique per tenant only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, PrimaryKeyConstraint, String, Table

from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

erp_metadata = MetaData()
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}

op_ledger = Table(
    "ai_op_ledger",
    erp_metadata,
    Column("sIdempotencyKey", IdString(128), nullable=False),
    Column("sBrandsId", IdString(64), nullable=False),
    Column("sSubsidiaryId", IdString(64), nullable=False),
    Column("sOpId", IdString(64), nullable=False),
    Column("sCommandType", String(150), nullable=False),
    Column("sPayloadHash", String(80), nullable=False),
    Column("sResult", JsonText),
    Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    PrimaryKeyConstraint("sIdempotencyKey", "sBrandsId", "sSubsidiaryId", name="pk_ai_op_ledger"),
    **_MYSQL,
)

op_fence = Table(
    "ai_op_fence",
    erp_metadata,
    Column("sOpId", IdString(64), nullable=False),
    # The seq of the claim up to which commits are barred; the database's name for it is older than that meaning.
    Column("iAttempt", Integer, key="iClaimSeq", nullable=False),
    Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    PrimaryKeyConstraint("sOpId", name="pk_ai_op_fence"),
    **_MYSQL,
)


def _counter(name: str, metadata: MetaData) -> Table:
    # sScope: which numbers are counted together (table, column, rule with its period filled in); see sql/numbering.py.
    return Table(
        name,
        metadata,
        Column("sBrandsId", IdString(64), nullable=False),
        Column("sSubsidiaryId", IdString(64), nullable=False),
        Column("sScope", IdString(255), nullable=False),
        Column("iLast", BigInteger, nullable=False),
        PrimaryKeyConstraint("sBrandsId", "sSubsidiaryId", "sScope", name=f"pk_{name}"),
        **_MYSQL,
    )


op_number = _counter("ai_op_number", erp_metadata)


@lru_cache(maxsize=32)
def counter_table(name: str) -> Table:
    """The counter table a catalogue names (``number_table``): ours, or one of the same columns under another name."""
    return op_number if name == op_number.name else _counter(name, MetaData())
