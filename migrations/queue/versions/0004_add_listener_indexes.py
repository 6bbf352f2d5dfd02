"""Indexes of those who only look: the journal by time, a tenant's operations by age, and what is open among them.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.steps import create_indexes, drop_index
from staging.storage.dialect import IdString, UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Only the columns the indexes need.
_EVENT = sa.Table(
    "ai_op_event",
    sa.MetaData(),
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("iSeq", sa.BigInteger, nullable=False),
    sa.Column("tCreateDate", UtcDateTime, nullable=False),
)
_QUEUE = sa.Table(
    "ai_op_queue",
    sa.MetaData(),
    sa.Column("sBrandsId", IdString(64)),
    sa.Column("sSubsidiaryId", IdString(64)),
    sa.Column("iStatusCode", sa.Integer),
    sa.Column("tCreateDate", UtcDateTime),
)
_BY_TIME = sa.Index("ix_ai_op_event_time", _EVENT.c.tCreateDate, _EVENT.c.sOpId, _EVENT.c.iSeq)
_TENANT = sa.Index("ix_ai_op_queue_tenant", _QUEUE.c.sBrandsId, _QUEUE.c.sSubsidiaryId, _QUEUE.c.tCreateDate)
_PENDING = sa.text("\"sStatus\" = 'pending'")
_OPEN = sa.Index(
    "ix_ai_op_queue_open",
    _QUEUE.c.sBrandsId,
    _QUEUE.c.sSubsidiaryId,
    _QUEUE.c.iStatusCode,
    _QUEUE.c.tCreateDate,
    postgresql_where=_PENDING,
    sqlite_where=_PENDING,
)


def upgrade() -> None:
    connection = op.get_bind()
    create_indexes(connection, _EVENT, [_BY_TIME])
    partial = connection.dialect.name in ("postgresql", "sqlite")  # elsewhere ix_ai_op_queue_due_my serves
    create_indexes(connection, _QUEUE, [_TENANT, *([_OPEN] if partial else [])])


def downgrade() -> None:
    connection = op.get_bind()
    drop_index(connection, "ai_op_event", "ix_ai_op_event_time")
    for name in ("ix_ai_op_queue_open", "ix_ai_op_queue_tenant"):
        drop_index(connection, "ai_op_queue", name)
