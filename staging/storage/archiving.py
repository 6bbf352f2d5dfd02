"""Moves operations that ended long ago to the archive, with their events and dependencies: a bounded number in one
transaction, which leaves alone whatever anybody else has locked.

An archived row is the row: what our tables know is copied in SQL, so that not even undecodable text changes on the way;
columns of an adopted table that are not ours become ``jExtra``.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Table,
    and_,
    bindparam,
    column,
    delete,
    exists,
    func,
    insert,
    inspect,
    or_,
    quoted_name,
    select,
    update,
)

from staging.contracts.status import Status, StatusCode
from staging.domain.identity import Tenant
from staging.storage.dialect import db_now_plus
from staging.storage.tables import op_dependency, op_event, op_event_archive, op_queue, op_queue_archive

q, d = op_queue.c, op_dependency.c
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_waiting, _archived = op_queue.alias("waiting"), op_queue_archive.alias("archived")

# What older programs left under words of their own is not ours to move.
_ENDED = or_(
    *(
        and_(
            q.sStatus == status.value,
            q.iStatusCode.in_([int(c) for c in StatusCode if c.is_terminal and c.status is status]),
        )
        for status in (Status.SUCCESS, Status.FAIL)
    )
)
_OLD = func.coalesce(q.tExecutedDate, q.tConfirmDate, q.tCreateDate) <= db_now_plus(bindparam("minus_age"))
_NEEDED = exists().where(
    d.sDependsOnId == q.sId, d.sOpId == _waiting.c.sId, _waiting.c.sStatus == Status.PENDING.value
)
# A foreign program wrote an archived id again: it stays where it is, the archive tells of the first.
_THERE_ALREADY = exists().where(_archived.c.sId == q.sId)
_MOVABLE = and_(_ENDED, _OLD, ~_NEEDED, ~_THERE_ALREADY)

_ahead = select(q.sId).where(q.sId > bindparam("after")).order_by(q.sId).limit(bindparam("size")).subquery()
_EDGE = select(func.max(_ahead.c.sId))
_BETWEEN = (
    select(q.sId).where(q.sId > bindparam("after"), q.sId <= bindparam("edge"), _MOVABLE).order_by(q.sId)
)
_LOCK = select(q.sId).where(q.sId.in_(_IDS), _MOVABLE).order_by(q.sId).with_for_update(skip_locked=True)
_TENANTS = (
    select(q.sBrandsId, q.sSubsidiaryId, func.count().label("rows"))
    .where(q.sId.in_(_IDS))
    .group_by(q.sBrandsId, q.sSubsidiaryId)
)
_LINKS = select(d.sOpId, d.sDependsOnId).where(d.sOpId.in_(_IDS)).order_by(d.sOpId, d.sDependsOnId)
_COUNTED = {"preserve_rowcount": True}


def _copy(source: Table, target: Table, key: str) -> Any:
    names = [own.name for own in source.columns]
    chosen = select(*(source.c[name] for name in names)).where(source.c[key].in_(_IDS))
    return insert(target).from_select(names, chosen).execution_options(**_COUNTED)


_COPY_ROWS = _copy(op_queue, op_queue_archive, "sId")
_COPY_EVENTS = _copy(op_event, op_event_archive, "sOpId")
_DROP_EVENTS = delete(op_event).where(op_event.c.sOpId.in_(_IDS))
_DROP_LINKS = delete(op_dependency).where(d.sOpId.in_(_IDS))
_DROP_ROWS = delete(op_queue).where(q.sId.in_(_IDS))
_KEEP = (
    update(op_queue_archive)
    .where(op_queue_archive.c.sId == bindparam("id"))
    .values(jDependsOn=bindparam("links"), jExtra=bindparam("extra"))
)


@dataclass(frozen=True, slots=True)
class Moved:
    """What one batch moved: ids, number of events, and rows by tenant."""

    ids: Sequence[str]
    events: int
    by_tenant: Mapping[Tenant, int]


def window(
    connection: Connection, after: str, size: int, older_than_s: float
) -> tuple[str | None, list[str]]:
    """Look at the next ``size`` rows by id: the last of them (None: no more) and those that may be moved."""
    edge = connection.execute(_EDGE, {"after": after, "size": size}).scalar()
    if edge is None:
        return None, []
    values = {"after": after, "edge": edge, "minus_age": -older_than_s}
    return str(edge), [row.sId for row in connection.execute(_BETWEEN, values)]


def extra_columns(connection: Connection) -> list[str]:
    """Columns of an adopted table that are not ours."""

    def key(name: str) -> str:
        return name if connection.dialect.name == "postgresql" else name.casefold()

    ours = {key(own.name) for own in op_queue.columns}
    found = [str(present["name"]) for present in inspect(connection).get_columns(op_queue.name)]
    return [name for name in found if key(name) not in ours]


def referring_tables(connection: Connection) -> list[str]:
    """Tables of others whose foreign keys point at the queue: moving a row would break or delete theirs."""
    keys = inspect(connection).get_multi_foreign_keys()
    return sorted(
        {
            str(table)
            for (_, table), found in keys.items()
            for one in found
            if one["referred_table"].casefold() == op_queue.name
        }
    )


def move(connection: Connection, ids: Sequence[str], older_than_s: float, extra: Sequence[str]) -> Moved:
    """Move those of ``ids`` that may still be moved and that nobody has locked; ``extra`` from ``extra_columns``.

    All or nothing with the caller's commit. Raises what the database says of a row that does not fit, and RuntimeError
    if rows were not as many going out as coming in: roll back.
    """
    locked = [r.sId for r in connection.execute(_LOCK, {"ids": list(ids), "minus_age": -older_than_s})]
    if not locked:
        return Moved([], 0, {})
    among = {"ids": locked}
    tenants = {
        Tenant(row.sBrandsId or "", row.sSubsidiaryId or ""): int(row.rows)
        for row in connection.execute(_TENANTS, among)
    }
    kept = _kept(connection, locked, extra)
    rows = connection.execute(_COPY_ROWS, among).rowcount
    if kept:
        connection.execute(_KEEP, kept)
    events = connection.execute(_COPY_EVENTS, among).rowcount
    gone = connection.execute(_DROP_EVENTS, among).rowcount
    connection.execute(_DROP_LINKS, among)
    left = connection.execute(_DROP_ROWS, among).rowcount
    if (rows, left, gone) != (len(locked), len(locked), events):
        raise RuntimeError(
            f"archiving {len(locked)} rows: {rows} in, {left} out; events {events} in, {gone} out"
        )
    return Moved(locked, events, tenants)


def _kept(connection: Connection, ids: Sequence[str], extra: Sequence[str]) -> list[dict[str, Any]]:
    """What the copy in SQL leaves out, for those rows that have any of it."""
    links: dict[str, list[str]] = {}
    for row in connection.execute(_LINKS, {"ids": list(ids)}):
        links.setdefault(row.sOpId, []).append(row.sDependsOnId)
    values: dict[str, dict[str, Any]] = {}
    if extra:
        columns: list[Any] = [column(quoted_name(name, True)).label(f"x{n}") for n, name in enumerate(extra)]
        statement = select(q.sId, *columns).where(q.sId.in_(_IDS))
        for row in connection.execute(statement, {"ids": list(ids)}):
            found = {n: v for n, v in zip(extra, row[1:], strict=True) if v is not None}
            if found:
                values[row.sId] = found
    return [
        {
            "id": op_id,
            "links": json.dumps(links[op_id]) if op_id in links else None,
            "extra": _json(values[op_id]) if op_id in values else None,
        }
        for op_id in sorted(links.keys() | values.keys())
    ]


def _json(values: Mapping[str, Any]) -> str:
    """ASCII only: whatever characters a foreign column holds, every database takes it."""
    finite = {n: str(v) if isinstance(v, float) and not math.isfinite(v) else v for n, v in values.items()}
    return json.dumps(finite, allow_nan=False, default=_plain)


def _plain(value: object) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    return str(value)  # exact decimals, intervals, UUIDs, ranges: as the database writes them
