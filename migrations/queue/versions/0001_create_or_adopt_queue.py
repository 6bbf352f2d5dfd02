"""The queue table: created, or adopted where an agent already writes one of this shape.

Revision ID: 0001
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

from migrations.adoption import create_or_adopt, drop_or_release
from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")

_QUEUE = sa.Table(
    "ai_op_queue",
    sa.MetaData(),
    sa.Column("sId", IdString(64), nullable=False),
    sa.Column("sBrandsId", IdString(64), nullable=False),
    sa.Column("sSubsidiaryId", IdString(64), nullable=False),
    sa.Column("sMakePerson", IdString(64), nullable=False),
    sa.Column("sOpType", sa.String(50), nullable=False),
    sa.Column("sCommandType", sa.String(150), nullable=False, server_default=""),
    sa.Column("sTargetFormId", sa.String(100), nullable=False),
    sa.Column("sTargetModuleId", sa.String(100), nullable=False, server_default=""),
    sa.Column("sTargetTable", sa.String(100), nullable=False, server_default=""),
    sa.Column("sTargetBillId", sa.String(200), nullable=False, server_default=""),
    sa.Column("sPayload", JsonText, nullable=False),
    sa.Column("sSourceRef", JsonText),
    sa.Column("bAutoExecute", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("sStatus", sa.String(20), nullable=False),
    sa.Column("iStatusCode", sa.Integer),
    sa.Column("sResultBillId", sa.String(200)),
    sa.Column("sResultMsg", _LONG_TEXT),
    sa.Column("sErrorMsg", _LONG_TEXT),
    sa.Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    sa.Column("tConfirmDate", UtcDateTime),
    sa.Column("tExecutedDate", UtcDateTime),
    sa.Column("tExpireAt", UtcDateTime),
    sa.Column("sIdempotencyKey", IdString(128)),
    sa.Column("sPayloadHash", sa.String(80), nullable=False, server_default=""),
    sa.Column("sTargetVersion", sa.String(80), nullable=False, server_default=""),
    sa.Column("sConversationId", sa.String(100), nullable=False, server_default=""),
    sa.Column("sTraceId", sa.String(100), nullable=False, server_default=""),
    sa.Column("sFlowId", sa.String(100), nullable=False, server_default=""),
    sa.Column("iFlowStep", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tNotBefore", UtcDateTime),
    sa.Column("iPriority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("iAttempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("iMaxAttempts", sa.Integer, nullable=False, server_default="5"),
    sa.Column("sLeaseToken", IdString(64)),
    sa.Column("tLeaseUntil", UtcDateTime),
    sa.Column("iSeq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("sPreparationId", IdString(64)),
    sa.Column("sConfirmPerson", IdString(64)),
    sa.Column("sApprovePerson", IdString(64)),
    sa.Column("bNeedsApproval", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("bAllowDuplicate", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("jPins", JsonText),
    sa.Column("jPreview", JsonText),
    sa.Column("sSnapshotHash", sa.String(80), nullable=False, server_default=""),
    sa.Column("sSeal", sa.String(80), nullable=False, server_default=""),
    sa.Column("sErrorCode", sa.String(60), nullable=False, server_default=""),
    sa.Column("jErrorDetail", JsonText),
    sa.Column("sLocale", sa.String(10), nullable=False, server_default="zh"),
    sa.PrimaryKeyConstraint("sId", name="pk_ai_op_queue"),
    sa.UniqueConstraint("sBrandsId", "sSubsidiaryId", "sIdempotencyKey", name="uq_ai_op_queue_idempotency"),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
_c = _QUEUE.c


def _partial(name: str, *columns: Any, where: str) -> sa.Index:
    return sa.Index(name, *columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))


_EVERYWHERE = [
    sa.Index(
        "ix_ai_op_queue_maker", _c.sBrandsId, _c.sSubsidiaryId, _c.sMakePerson, _c.sStatus, _c.tCreateDate
    ),
    sa.Index("ix_ai_op_queue_preparation", _c.sPreparationId),
]
# Partial where the database can: their size follows the backlog, not the history.
_PARTIAL = [
    _partial("ix_ai_op_queue_due", _c.iPriority.desc(), _c.tCreateDate, _c.sId, where='"iStatusCode" = 100'),
    _partial("ix_ai_op_queue_lease", _c.tLeaseUntil, where='"iStatusCode" IN (101, 102)'),
    _partial("ix_ai_op_queue_waiting", _c.tNotBefore, where='"iStatusCode" = 105'),
    _partial(
        "ix_ai_op_queue_expiry", _c.tExpireAt, where='"sStatus" = \'pending\' AND "tExpireAt" IS NOT NULL'
    ),
]
_MYSQL_FAMILY = [
    sa.Index("ix_ai_op_queue_due_my", _c.iStatusCode, _c.tCreateDate, _c.sId),
    sa.Index("ix_ai_op_queue_lease_my", _c.iStatusCode, _c.tLeaseUntil),
    sa.Index("ix_ai_op_queue_expiry_my", _c.sStatus, _c.tExpireAt),
]


def upgrade() -> None:
    connection = op.get_bind()
    partial = connection.dialect.name in ("postgresql", "sqlite")
    indexes = [*(_PARTIAL if partial else _MYSQL_FAMILY), *_EVERYWHERE]
    notes = create_or_adopt(connection, _QUEUE, indexes)
    context.config.attributes["notes"].extend(notes)


def downgrade() -> None:
    drop_or_release(op.get_bind(), _QUEUE.name)
