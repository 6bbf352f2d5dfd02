"""What Opstage keeps in the ERP's database: the ledger, its fence and the number counters.

Revision ID: 0001
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from migrations.steps import create_table, drop_table
from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
_metadata = sa.MetaData()

_LEDGER = sa.Table(
    "ai_op_ledger",
    _metadata,
    sa.Column("sIdempotencyKey", IdString(128), nullable=False),
    sa.Column("sBrandsId", IdString(64), nullable=False),
    sa.Column("sSubsidiaryId", IdString(64), nullable=False),
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("sCommandType", sa.String(150), nullable=False),
    sa.Column("sPayloadHash", sa.String(80), nullable=False),
    sa.Column("sResult", JsonText),
    sa.Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    sa.PrimaryKeyConstraint("sIdempotencyKey", "sBrandsId", "sSubsidiaryId", name="pk_ai_op_ledger"),
    **_MYSQL,
)

_FENCE = sa.Table(
    "ai_op_fence",
    _metadata,
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("iAttempt", sa.Integer, nullable=False),
    sa.Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    sa.PrimaryKeyConstraint("sOpId", name="pk_ai_op_fence"),
    **_MYSQL,
)

_NUMBER = sa.Table(
    "ai_op_number",
    _metadata,
    sa.Column("sBrandsId", IdString(64), nullable=False),
    sa.Column("sSubsidiaryId", IdString(64), nullable=False),
    sa.Column("sScope", IdString(255), nullable=False),
    sa.Column("iLast", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("sBrandsId", "sSubsidiaryId", "sScope", name="pk_ai_op_number"),
    **_MYSQL,
)


def upgrade() -> None:
    for table in (_LEDGER, _FENCE, _NUMBER):
        create_table(op.get_bind(), table)


def downgrade() -> None:
    for table in (_NUMBER, _FENCE, _LEDGER):
        drop_table(op.get_bind(), table.name)
