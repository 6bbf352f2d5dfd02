"""Tables the purchase order is written to, and the queue table of the hand-written loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Numeric,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

metadata = MetaData()
_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
_amount = Numeric(18, 2).with_variant(Text(), "sqlite")  # NUMERIC is a binary float there


def _tenant() -> list[Column[Any]]:
    return [Column("brands", String(64), nullable=False), Column("subsidiary", String(64), nullable=False)]


counter = Table(
    "po_counter",
    metadata,
    Column("brands", String(64), primary_key=True),
    Column("subsidiary", String(64), primary_key=True),
    Column("last_no", BigInteger, nullable=False),
    **_MYSQL,
)
budget = Table(
    "po_budget",
    metadata,
    Column("brands", String(64), primary_key=True),
    Column("subsidiary", String(64), primary_key=True),
    Column("used_cents", BigInteger, nullable=False),
    Column("limit_cents", BigInteger, nullable=False),
    CheckConstraint("used_cents <= limit_cents", name="ck_po_budget"),
    **_MYSQL,
)
master = Table(
    "po_master",
    metadata,
    Column("id", String(64), primary_key=True),
    *_tenant(),
    Column("bill_no", String(50), nullable=False),
    Column("supplier", String(100), nullable=False),
    Column("memo", Text),
    Column("total", _amount, nullable=False),
    Column("maker", String(64)),
    Column("created_at", DateTime(timezone=True), server_default=func.now()),
    UniqueConstraint("brands", "subsidiary", "bill_no", name="uq_po_master_no"),
    **_MYSQL,
)
line = Table(
    "po_line",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("master_id", String(64), ForeignKey("po_master.id"), nullable=False),
    Column("line_no", Integer, nullable=False),
    Column("product", String(50), nullable=False),
    Column("quantity", _amount, nullable=False),
    Column("price", _amount, nullable=False),
    Column("amount", _amount, nullable=False),
    Index("ix_po_line_master", "master_id"),
    **_MYSQL,
)
grant = Table(
    "po_grant",
    metadata,
    Column("id", Integer, primary_key=True),
    *_tenant(),
    Column("user_id", String(64), nullable=False),
    Column("form_id", String(100), nullable=False),
    Column("op_type", String(50), nullable=False),
    Index("ix_po_grant_user", "brands", "subsidiary", "user_id"),
    **_MYSQL,
)
# What a careful person writes by hand: one table, a partial index on what is open.
bench_queue = Table(
    "bench_queue",
    metadata,
    Column("seq", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True),
    *_tenant(),
    Column("shard", SmallInteger, nullable=False),
    Column("payload", Text, nullable=False),
    Column("status", String(20), nullable=False, server_default="pending"),
    Column("bill_no", String(50)),
    **_MYSQL,
)
Index("ix_bench_queue_open", bench_queue.c.seq, postgresql_where=text("status = 'pending'")).ddl_if(
    dialect="postgresql"
)
Index("ix_bench_queue_open", bench_queue.c.seq, sqlite_where=text("status = 'pending'")).ddl_if(
    dialect="sqlite"
)


def _mysql_family() -> Callable[..., bool]:
    return lambda ddl, target, bind, **kw: kw["dialect"].name in ("mysql", "mariadb")


Index("ix_bench_queue_open_my", bench_queue.c.status, bench_queue.c.seq).ddl_if(callable_=_mysql_family())
