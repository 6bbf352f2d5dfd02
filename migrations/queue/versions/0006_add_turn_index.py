"""The index by which tenants take turns: whose due rows come next.

Revision ID: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.steps import create_indexes, drop_index
from staging.storage.dialect import IdString, UtcDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Only the columns the index needs.
_QUEUE = sa.Table(
    "ai_op_queue",
    sa.MetaData(),
    sa.Column("sId", IdString(64)),
    sa.Column("sBrandsId", IdString(64)),
    sa.Column("sSubsidiaryId", IdString(64)),
    sa.Column("iStatusCode", sa.Integer),
    sa.Column("iPriority", sa.Integer),
    sa.Column("tCreateDate", UtcDateTime),
)
_c = _QUEUE.c
_TURN = (_c.sBrandsId, _c.sSubsidiaryId, _c.iPriority, _c.tCreateDate, _c.sId)
_DUE = sa.text('"iStatusCode" = 100')
_PARTIAL = sa.Index("ix_ai_op_queue_turn", *_TURN, postgresql_where=_DUE, sqlite_where=_DUE)
_MYSQL = sa.Index("ix_ai_op_queue_turn_my", _c.iStatusCode, *_TURN)


def upgrade() -> None:
    connection = op.get_bind()
    partial = connection.dialect.name in ("postgresql", "sqlite")
    create_indexes(connection, _QUEUE, [_PARTIAL if partial else _MYSQL])


def downgrade() -> None:
    connection = op.get_bind()
    partial = connection.dialect.name in ("postgresql", "sqlite")
    drop_index(connection, "ai_op_queue", "ix_ai_op_queue_turn" if partial else "ix_ai_op_queue_turn_my")
