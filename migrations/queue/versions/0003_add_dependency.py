"""Operations that wait for another operation.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.steps import create_table, drop_table
from staging.storage.dialect import IdString

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_DEPENDENCY = sa.Table(
    "ai_op_dependency",
    sa.MetaData(),
    sa.Column("sOpId", IdString(64), nullable=False),
    sa.Column("sDependsOnId", IdString(64), nullable=False),
    sa.PrimaryKeyConstraint("sOpId", "sDependsOnId", name="pk_ai_op_dependency"),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
_INDEXES = [sa.Index("ix_ai_op_dependency_on", _DEPENDENCY.c.sDependsOnId)]


def upgrade() -> None:
    create_table(op.get_bind(), _DEPENDENCY, _INDEXES)


def downgrade() -> None:
    drop_table(op.get_bind(), _DEPENDENCY.name)
