"""The journal: events of each operation, and the audit chain with its heads.

Revision ID: 0002
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from migrations.steps import create_table, drop_table
from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
_metadata = sa.MetaData()

_EVENT = sa.Table(
    "ai_op_event",
    _metadata,
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("iSeq", sa.BigInteger, nullable=False),
    sa.Column("sVerb", sa.String(20), nullable=False),
    sa.Column("sStatus", sa.String(20), nullable=False),
    sa.Column("iStatusCode", sa.Integer, nullable=False),
    sa.Column("iAttempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("sMessage", _LONG_TEXT),
    sa.Column("sActor", IdString(128), nullable=False, server_default=""),
    sa.Column("sActorKind", sa.String(20), nullable=False, server_default="system"),
    sa.Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    sa.PrimaryKeyConstraint("sOpId", "iSeq", name="pk_ai_op_event"),
    sa.CheckConstraint(sa.column("iSeq") >= 1, name="ck_ai_op_event_seq_from_one"),
    **_MYSQL,
)

_AUDIT_LOG = sa.Table(
    "ai_audit_log",
    _metadata,
    sa.Column("sChain", IdString(140), nullable=False),
    sa.Column("iSeq", sa.BigInteger, nullable=False),
    sa.Column("sBrandsId", IdString(64), nullable=False),
    sa.Column("sSubsidiaryId", IdString(64), nullable=False),
    sa.Column("sActor", IdString(128), nullable=False),
    sa.Column("sActorKind", sa.String(20), nullable=False),
    sa.Column("sAction", sa.String(50), nullable=False),
    sa.Column("sOpId", IdString(64), nullable=False, server_default=""),
    sa.Column("jDetail", JsonText, nullable=False),
    sa.Column("tCreateDate", UtcDateTime, nullable=False),
    sa.Column("sPrevHash", sa.String(80), nullable=False),
    sa.Column("sHash", sa.String(80), nullable=False),
    sa.PrimaryKeyConstraint("sChain", "iSeq", name="pk_ai_audit_log"),
    **_MYSQL,
)
_AUDIT_LOG_INDEXES = [sa.Index("ix_ai_audit_log_op", _AUDIT_LOG.c.sOpId)]

_AUDIT_HEAD = sa.Table(
    "ai_audit_head",
    _metadata,
    sa.Column("sChain", IdString(140), nullable=False),
    sa.Column("iSeq", sa.BigInteger, nullable=False),
    sa.Column("sHash", sa.String(80), nullable=False),
    sa.PrimaryKeyConstraint("sChain", name="pk_ai_audit_head"),
    **_MYSQL,
)


def upgrade() -> None:
    connection = op.get_bind()
    create_table(connection, _EVENT)
    create_table(connection, _AUDIT_LOG, _AUDIT_LOG_INDEXES)
    create_table(connection, _AUDIT_HEAD)


def downgrade() -> None:
    connection = op.get_bind()
    for table in (_AUDIT_HEAD, _AUDIT_LOG, _EVENT):
        drop_table(connection, table.name)
