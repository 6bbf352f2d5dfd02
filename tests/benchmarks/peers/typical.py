"""A Celery task as most projects write it: the ORM throughout, and a commit for each status."""

from __future__ import annotations

import json
import os
import secrets
from decimal import Decimal
from functools import lru_cache
from typing import Any

from celery import Celery
from sqlalchemy import Column, String, Table, Text, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Session, relationship, sessionmaker

from tests.benchmarks.loops.wire import SUBSIDIARY, USER, database, open_redis
from tests.benchmarks.peers.common import main
from tests.benchmarks.reference import tables
from tests.benchmarks.reference.body import NoBudget, channel, done_message
from tests.benchmarks.reference.orders import Order

app = Celery("typical", broker=os.environ.get("BENCH_REDIS", ""))
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


class Base(DeclarativeBase):
    metadata = tables.metadata


class Staged(Base):
    __table__ = tables.bench_queue


class Counter(Base):
    __table__ = tables.counter


class Budget(Base):
    __table__ = tables.budget


class Line(Base):
    __table__ = tables.line


class Purchase(Base):
    __table__ = tables.master
    lines = relationship(Line)


class Ledger(Base):
    __table__ = Table(
        "ai_op_ledger",
        tables.metadata,
        Column("sIdempotencyKey", String(128), primary_key=True),
        Column("sBrandsId", String(64), primary_key=True),
        Column("sSubsidiaryId", String(64), primary_key=True),
        Column("sOpId", String(64), nullable=False),
        Column("sCommandType", String(150), nullable=False),
        Column("sPayloadHash", String(80), nullable=False),
        Column("sResult", Text),
    )


@lru_cache(maxsize=1)
def sessions() -> sessionmaker[Session]:
    return sessionmaker(create_engine(database().replace("postgresql://", "postgresql+psycopg://")))


@lru_cache(maxsize=1)
def server() -> Any:
    return open_redis()


@app.task(name="place")
def place(op_id: str) -> None:
    with sessions()() as session:
        staged: Any = session.scalars(select(Staged).where(tables.bench_queue.c.id == op_id)).one()
        staged.status = "processing"
        session.commit()
        bill_no = write(session, op_id, staged.brands, json.loads(staged.payload))
        session.commit()
        staged.status, staged.bill_no = "done", bill_no
        session.commit()
    server().publish(channel(op_id), done_message(op_id, bill_no))


def write(session: Session, op_id: str, brands: str, payload: dict[str, Any]) -> str:
    """The purchase order and its ledger row; returns the number."""
    tenant = {"brands": brands, "subsidiary": SUBSIDIARY}
    counter: Any = session.get(Counter, tenant, with_for_update=True)
    counter.last_no += 1
    bill_no, key, total = f"PO{counter.last_no:08d}", secrets.token_urlsafe(18), Decimal(payload["total"])
    words = {"supplier": payload["supplier"], "memo": payload["memo"], "maker": USER}
    order = Purchase(id=key, bill_no=bill_no, total=total, **words, **tenant)
    order.lines = [
        Line(
            id=secrets.token_urlsafe(18),
            line_no=number,
            product=one["product"],
            **{name: Decimal(one[name]) for name in ("quantity", "price", "amount")},
        )
        for number, one in enumerate(payload["lines"], 1)
    ]
    session.add(order)
    budget: Any = session.get(Budget, tenant, with_for_update=True)
    budget.used_cents += int(total * 100)
    if budget.used_cents > budget.limit_cents:
        raise NoBudget(brands)
    owner = {"sIdempotencyKey": op_id, "sBrandsId": brands, "sSubsidiaryId": SUBSIDIARY}
    result = json.dumps({"billId": key, "number": bill_no})
    session.add(Ledger(**owner, sOpId=op_id, sCommandType="po", sPayloadHash="", sResult=result))
    return bill_no


def fill(orders: list[Order]) -> None:
    with sessions()() as session:
        rows = [
            {"id": o.id, "brands": o.brands, "subsidiary": SUBSIDIARY, "shard": o.shard, "payload": o.payload}
            for o in orders
        ]
        session.execute(insert(Staged), rows)
        session.commit()
    for order in orders:
        place.delay(order.id)


if __name__ == "__main__":
    main(fill=fill, send=lambda order: fill([order]))
