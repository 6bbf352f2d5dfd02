"""The index of due rows, whoever's, says of which status they are: the questions whose turn it is do not, so that they
cannot be answered from it, row by row through the whole backlog, where statistics know of none yet.

Revision ID: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.steps import create_indexes, drop_index
from staging.storage.dialect import IdString, UtcDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Only the columns the index needs.
_QUEUE = sa.Table(
    "ai_op_queue",
    sa.MetaData(),
    sa.Column("sId", IdString(64)),
    sa.Column("iPriority", sa.Integer),
    sa.Column("tCreateDate", UtcDateTime),
)
_c = _QUEUE.c
_COLUMNS = (_c.iPriority.desc(), _c.tCreateDate, _c.sId)


def _partial(name: str, where: str) -> sa.Index:
    predicate = sa.text(where)
    return sa.Index(name, *_COLUMNS, postgresql_where=predicate, sqlite_where=predicate)


_BEFORE = _partial("ix_ai_op_queue_due", '"iStatusCode" = 100')
_NOW = _partial("ix_ai_op_queue_next", '"iStatusCode" = 100 AND "sStatus" = \'pending\'')


def _replace(old: sa.Index, new: sa.Index) -> None:
    connection = op.get_bind()
    if connection.dialect.name not in ("postgresql", "sqlite"):
        return  # the MySQL family has no partial indexes, and goes by the one of turns
    create_indexes(connection, _QUEUE, [new])
    drop_index(connection, "ai_op_queue", str(old.name))


def upgrade() -> None:
    _replace(_BEFORE, _NOW)


def downgrade() -> None:
    _replace(_NOW, _BEFORE)
