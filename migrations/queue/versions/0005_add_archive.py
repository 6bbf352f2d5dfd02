"""Where operations that ended long ago are moved to, with their events.

Revision ID: 0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from migrations.errors import refuse
from migrations.steps import create_table, drop_table, has_table
from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
_metadata = sa.MetaData()

_QUEUE_ARCHIVE = sa.Table(
    "ai_op_queue_archive",
    _metadata,
    sa.Column("sId", IdString(64), nullable=False),
    sa.Column("sBrandsId", IdString(64)),
    sa.Column("sSubsidiaryId", IdString(64)),
    sa.Column("sMakePerson", IdString(64)),
    sa.Column("sOpType", sa.String(50)),
    sa.Column("sCommandType", sa.String(150)),
    sa.Column("sTargetFormId", sa.String(100)),
    sa.Column("sTargetModuleId", sa.String(100)),
    sa.Column("sTargetTable", sa.String(100)),
    sa.Column("sTargetBillId", sa.String(200)),
    sa.Column("sPayload", JsonText),
    sa.Column("sSourceRef", JsonText),
    sa.Column("bAutoExecute", sa.SmallInteger),
    sa.Column("sStatus", sa.String(20)),
    sa.Column("iStatusCode", sa.Integer),
    sa.Column("sResultBillId", sa.String(200)),
    sa.Column("sResultMsg", _LONG_TEXT),
    sa.Column("sErrorMsg", _LONG_TEXT),
    sa.Column("tCreateDate", UtcDateTime),
    sa.Column("tConfirmDate", UtcDateTime),
    sa.Column("tExecutedDate", UtcDateTime),
    sa.Column("tExpireAt", UtcDateTime),
    sa.Column("sIdempotencyKey", IdString(128)),
    sa.Column("sPayloadHash", sa.String(80)),
    sa.Column("sTargetVersion", sa.String(80)),
    sa.Column("sConversationId", sa.String(100)),
    sa.Column("sTraceId", sa.String(100)),
    sa.Column("sFlowId", sa.String(100)),
    sa.Column("iFlowStep", sa.Integer),
    sa.Column("tNotBefore", UtcDateTime),
    sa.Column("iPriority", sa.Integer),
    sa.Column("iAttempt", sa.Integer),
    sa.Column("iMaxAttempts", sa.Integer),
    sa.Column("sLeaseToken", IdString(64)),
    sa.Column("tLeaseUntil", UtcDateTime),
    sa.Column("iSeq", sa.BigInteger),
    sa.Column("sPreparationId", IdString(64)),
    sa.Column("sConfirmPerson", IdString(64)),
    sa.Column("sApprovePerson", IdString(64)),
    sa.Column("bNeedsApproval", sa.SmallInteger),
    sa.Column("bAllowDuplicate", sa.SmallInteger),
    sa.Column("jPins", JsonText),
    sa.Column("jPreview", JsonText),
    sa.Column("sSnapshotHash", sa.String(80)),
    sa.Column("sSeal", sa.String(80)),
    sa.Column("sErrorCode", sa.String(60)),
    sa.Column("jErrorDetail", JsonText),
    sa.Column("sLocale", sa.String(10)),
    sa.Column("jDependsOn", JsonText),
    sa.Column("jExtra", JsonText),
    sa.Column("tArchiveDate", UtcDateTime, nullable=False, server_default=db_now()),
    sa.PrimaryKeyConstraint("sId", name="pk_ai_op_queue_archive"),
    **_MYSQL,
)
_QUEUE_ARCHIVE_INDEXES = [
    sa.Index("ix_ai_op_queue_archive_preparation", _QUEUE_ARCHIVE.c.sPreparationId),
]

_EVENT_ARCHIVE = sa.Table(
    "ai_op_event_archive",
    _metadata,
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("iSeq", sa.BigInteger, nullable=False),
    sa.Column("sVerb", sa.String(20), nullable=False),
    sa.Column("sStatus", sa.String(20), nullable=False),
    sa.Column("iStatusCode", sa.Integer, nullable=False),
    sa.Column("iAttempt", sa.Integer, nullable=False),
    sa.Column("sMessage", _LONG_TEXT),
    sa.Column("sActor", IdString(128), nullable=False),
    sa.Column("sActorKind", sa.String(20), nullable=False),
    sa.Column("tCreateDate", UtcDateTime, nullable=False),
    sa.PrimaryKeyConstraint("sOpId", "iSeq", name="pk_ai_op_event_archive"),
    **_MYSQL,
)


def upgrade() -> None:
    connection = op.get_bind()
    create_table(connection, _QUEUE_ARCHIVE, _QUEUE_ARCHIVE_INDEXES)
    create_table(connection, _EVENT_ARCHIVE)


def refuse_downgrade(connection: sa.Connection) -> None:
    """Raises ``MigrationRefused`` while there is anything in the archive: nowhere else is what it holds."""
    for table in (_QUEUE_ARCHIVE, _EVENT_ARCHIVE):
        if has_table(connection, table.name):
            kept = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            if kept:
                raise refuse(
                    f"{table.name} 中有 {kept} 行已归档的数据，回退会将其删除。请先将其导出并清空该表。",
                    f"{table.name} holds {kept} archived rows, which a downgrade would delete. "
                    "Copy them elsewhere and empty the table first.",
                )


def downgrade() -> None:
    connection = op.get_bind()
    refuse_downgrade(connection)
    for table in (_EVENT_ARCHIVE, _QUEUE_ARCHIVE):
        drop_table(connection, table.name)
