"""Which rows a worker may claim now, and whose turn it is.

Tenants take turns, so that one with thousands of rows keeps nobody else waiting; within a tenant the order is priority,
then age. All of this is a look without lock: the claim's compare-and-set decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    tuple_,
)

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.storage.dialect import db_now, db_now_plus, is_mysql
from staging.storage.rows import IS_PENDING, code_by_key, code_is, status_by_key
from staging.storage.tables import op_queue

q = op_queue.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_IN_TIME = and_(
    or_(q.tNotBefore.is_(None), q.tNotBefore <= db_now()),
    or_(q.tExpireAt.is_(None), q.tExpireAt > db_now()),
)
IS_DUE = and_(code_is(StatusCode.SUBMITTED), IS_PENDING, _IN_TIME)
# Spelled so that only the index of turns fits (tables.py): with the other one a planner whose statistics know of no
# backlog yet reads all of it for one row.
_IS_DUE_BY_TURN = and_(code_is(StatusCode.SUBMITTED), status_by_key(Status.PENDING), _IN_TIME)
IS_DUE_BY_KEY = and_(code_by_key(StatusCode.SUBMITTED), status_by_key(Status.PENDING), _IN_TIME)


@dataclass(frozen=True, slots=True)
class Due:
    """A row a worker may claim now. ``seq`` 0: foreign SQL wrote it and nobody has admitted it yet."""

    id: str
    attempt: int
    seq: int


_COLUMNS = (q.sId, q.iAttempt, q.iSeq)
_DUE = (
    select(*_COLUMNS)
    .where(
        IS_DUE,
        or_(
            q.tCreateDate <= db_now_plus(bindparam("minus_age")),
            q.tNotBefore.is_not(None),
            func.coalesce(q.iSeq, 0) == 0,  # a row of foreign SQL: nobody announced it
        ),
    )
    .order_by(q.iPriority.desc(), q.tCreateDate, q.sId)
    .limit(bindparam("limit"))
)
_DUE_AMONG = select(*_COLUMNS).where(q.sId.in_(_IDS), IS_DUE_BY_KEY)

_B, _S = bindparam("b", type_=q.sBrandsId.type), bindparam("s", type_=q.sSubsidiaryId.type)
_OF_TENANT = and_(_IS_DUE_BY_TURN, q.sBrandsId == _B, q.sSubsidiaryId == _S)
_HIGHEST = select(q.iPriority).where(_OF_TENANT).order_by(q.iPriority.desc()).limit(1).scalar_subquery()
# One priority at a time: thus an index of ascending columns serves every database (MariaDB knows no other before 10.8).
_DUE_OF = (
    select(*_COLUMNS)
    .where(_OF_TENANT, q.iPriority == _HIGHEST)
    .order_by(q.tCreateDate, q.sId)
    .limit(bindparam("limit"))
)


_AT_WORK: Select[Any] = (
    select(literal_column("1"))
    .where(
        q.sBrandsId == _B,
        q.sSubsidiaryId == _S,
        code_is(StatusCode.RUNNING),
        IS_PENDING,
    )
    .limit(1)
)


def _next_tenant(later: ColumnElement[bool]) -> Any:
    # Ordered by one column more than needed: only the index of due rows alone gives that for nothing.
    columns = (q.sBrandsId, q.sSubsidiaryId)
    return select(*columns).where(_IS_DUE_BY_TURN, later).order_by(*columns, q.iPriority).limit(1)


# The same condition, spelled as each optimizer finds it in the index.
_NEXT = _next_tenant(tuple_(q.sBrandsId, q.sSubsidiaryId) > tuple_(_B, _S))
_NEXT_MYSQL = _next_tenant(or_(q.sBrandsId > _B, and_(q.sBrandsId == _B, q.sSubsidiaryId > _S)))
_BEFORE_ALL = Tenant("", "")


def in_turn(connection: Connection, after: Tenant | None, limit: int) -> tuple[Tenant | None, list[Due]]:
    """The next tenant behind ``after`` that has due rows, and the first of them; behind the last comes the first again.

    Where no tenant has any: (None, rows that name no tenant or no priority, as an adopted table may hold).
    """
    tenant = _tenant_after(connection, after or _BEFORE_ALL)
    if tenant is None and after is not None:
        tenant = _tenant_after(connection, _BEFORE_ALL)
    if tenant is not None:
        key = {"b": tenant.brands_id, "s": tenant.subsidiary_id}
        found = _due(connection.execute(_DUE_OF, key | {"limit": limit}))
        if found:
            return tenant, found
    return None, due(connection, limit)


def is_at_work(connection: Connection, tenant: Tenant) -> bool:
    """True where somebody executes operations of ``tenant`` now."""
    key = {"b": tenant.brands_id, "s": tenant.subsidiary_id}
    return connection.execute(_AT_WORK, key).first() is not None


def _tenant_after(connection: Connection, after: Tenant) -> Tenant | None:
    statement = _NEXT_MYSQL if is_mysql(connection.dialect) else _NEXT
    row = connection.execute(statement, {"b": after.brands_id, "s": after.subsidiary_id}).first()
    return None if row is None else Tenant(*row)


def due(connection: Connection, limit: int, older_than_s: float = 0.0) -> list[Due]:
    """Due rows of all tenants, oldest first; ``older_than_s`` leaves out fresh ones, which were announced."""
    return _due(connection.execute(_DUE, {"limit": limit, "minus_age": -older_than_s}))


def due_among(connection: Connection, ids: Sequence[str]) -> list[Due]:
    """Those of ``ids`` that are due, in that order."""
    found = {d.id: d for d in _due(connection.execute(_DUE_AMONG, {"ids": list(ids)}))}
    return [found[i] for i in dict.fromkeys(ids) if i in found]


def _due(rows: Iterable[Row[Any]]) -> list[Due]:
    return [Due(row.sId, row.iAttempt or 0, row.iSeq or 0) for row in rows]
