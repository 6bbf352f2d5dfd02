"""The audit log: append-only, per tenant, each entry chained to the one before it by hash.

The chain's head row is locked by the append, so concurrent writers queue up instead of forking the chain.
Append last in a transaction: the lock is then held only until the commit that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import CTE, ColumnElement, Connection, bindparam, select, update

from staging.domain.canonical import canonical_json, payload_hash
from staging.domain.identity import Actor, Tenant
from staging.storage.bulk import as_given, insert_given, insert_rows
from staging.storage.compiled import compiled
from staging.storage.dialect import db_now, is_mysql
from staging.storage.tables import audit_head, audit_log
from staging.storage.upsert import insert_if_absent

GENESIS = "sha256:" + "0" * 64
h, a = audit_head.c, audit_log.c


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who (``actor``) did what (``action``) to which operation; ``detail`` is JSON-ready and holds no secrets."""

    actor: Actor
    action: str
    op_id: str = ""
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the chain does not hold: ``reason`` is changed, missing, reordered, head or rewritten."""

    chain: str
    seq: int
    reason: str


def chain_of(tenant: Tenant) -> str:
    return f"{tenant.brands_id}/{tenant.subsidiary_id}"


def entry_hash(values: Mapping[str, Any]) -> str:
    """Hash over everything an entry says, the previous hash included."""
    at: datetime = values["tCreateDate"]
    fields = {
        k: values[k] for k in ("sChain", "sActor", "sActorKind", "sAction", "sOpId", "jDetail", "sPrevHash")
    }
    return payload_hash(fields | {"iSeq": int(values["iSeq"]), "tCreateDate": at.astimezone(UTC).isoformat()})


_MOVE_ON = update(audit_head).where(h.sChain == bindparam("chain")).values(iSeq=h.iSeq + bindparam("count"))
_HEAD_COLUMNS = (h.iSeq, h.sHash, db_now().label("now"))
_HEAD = select(*_HEAD_COLUMNS).where(h.sChain == bindparam("chain"))
_LOCK_AND_READ = _MOVE_ON.returning(*_HEAD_COLUMNS)
_NEW_HEAD = update(audit_head).where(h.sChain == bindparam("chain")).values(sHash=bindparam("hash"))
_APPEND_AND_HEAD = _NEW_HEAD.add_cte(insert_given(audit_log, tuple(a.keys())).cte("appended"))


def append(connection: Connection, entries: Sequence[AuditEntry]) -> datetime | None:
    """Append ``entries`` (tenant by tenant, in a fixed order of chains) inside the caller's transaction.

    Returns the database time they carry (with several chains the last one's), None for no entries.
    """
    by_chain: dict[str, list[AuditEntry]] = {}
    for entry in entries:
        by_chain.setdefault(chain_of(entry.actor.tenant), []).append(entry)
    at = None
    for chain in sorted(by_chain):
        at = _append_chain(connection, chain, by_chain[chain])
    return at


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a chain, moved on and locked by this transaction: ``seq`` of the newest of the entries to come, and
    the ``hash`` of the one before them. ``now`` is database time."""

    seq: int
    hash: str
    now: datetime


def moving_on(once: ColumnElement[bool]) -> tuple[CTE, list[ColumnElement[Any]]]:
    """Moves the head on by ``count`` and locks it, ``once`` that holds, as a part of a statement that is given
    ``chain`` and ``count`` (PostgreSQL); and what that statement has to give for ``head_of``."""
    head = _MOVE_ON.where(once).returning(*_HEAD_COLUMNS).cte("head")
    return head, [head.c[name].label(f"head_{name}") for name in ("iSeq", "sHash", "now")]


def head_of(row: Any) -> Head | None:
    """The head, of such a statement's row; None where it was not moved: there is none yet, or ``once`` was false."""
    return None if row.head_iSeq is None else Head(row.head_iSeq, row.head_sHash, row.head_now)


def _advance(connection: Connection, chain: str, count: int) -> Head | None:
    """Move the head on by ``count`` and keep it locked; None where the chain has none yet."""
    lock = {"chain": chain, "count": count}
    if not is_mysql(connection.dialect):  # that family has no UPDATE … RETURNING
        moved = connection.execute(_LOCK_AND_READ, lock).first()
        return Head(*moved) if moved else None
    if connection.execute(_MOVE_ON, lock).rowcount == 0:
        return None
    return Head(*connection.execute(_HEAD, {"chain": chain}).one())


def _append_chain(connection: Connection, chain: str, entries: Sequence[AuditEntry]) -> datetime:
    head = _advance(connection, chain, len(entries))
    if head is None:
        insert_if_absent(connection, audit_head, {"sChain": chain, "iSeq": 0, "sHash": GENESIS})
        head = _advance(connection, chain, len(entries))
    if head is None:
        raise RuntimeError(f"the head of the audit chain {chain!r} is gone; nothing may be committed")
    append_to(connection, chain, head, entries)
    return head.now


def append_to(connection: Connection, chain: str, head: Head, entries: Sequence[AuditEntry]) -> None:
    """``append`` (at least one entry, of this chain) where the caller has moved the head on, by their number."""
    previous, first = head.hash, head.seq - len(entries) + 1
    rows = []
    for seq, entry in enumerate(entries, start=first):
        row = {
            "sChain": chain,
            "iSeq": seq,
            "sBrandsId": entry.actor.tenant.brands_id,
            "sSubsidiaryId": entry.actor.tenant.subsidiary_id,
            "sActor": entry.actor.user_id,
            "sActorKind": entry.actor.kind.value,
            "sAction": entry.action,
            "sOpId": entry.op_id,
            "jDetail": canonical_json(dict(entry.detail or {})),
            "tCreateDate": head.now,
            "sPrevHash": previous,
        }
        previous = row["sHash"] = entry_hash(row)
        rows.append(row)
    new_head = {"chain": chain, "hash": previous}
    if connection.dialect.name == "postgresql":  # one round trip
        compiled(_APPEND_AND_HEAD, connection.dialect).run(connection, as_given(rows) | new_head)
        return
    insert_rows(connection, audit_log, rows)
    connection.execute(_NEW_HEAD, new_head)


def verify(connection: Connection, tenant: Tenant | None = None) -> list[Break]:
    """Walk the chains (one tenant's, or all) and return every break; an empty list means the log is whole.

    Cutting off the tail is found by the head row; whoever can rewrite head and log together is found only by comparing
    with a head kept elsewhere (``heads``).
    """
    statement = select(audit_log).order_by(a.sChain, a.iSeq)
    known = heads(connection)
    if tenant is not None:
        statement = statement.where(a.sChain == chain_of(tenant))
        known = {k: v for k, v in known.items() if k == chain_of(tenant)}
    breaks: list[Break] = []
    last: dict[str, tuple[int, str]] = {}
    for row in connection.execute(statement.execution_options(yield_per=1000)):
        seq, previous = last.get(row.sChain, (0, GENESIS))
        if row.iSeq != seq + 1:
            breaks.append(Break(row.sChain, seq + 1, "missing"))
        elif row.sPrevHash != previous:
            breaks.append(Break(row.sChain, row.iSeq, "reordered"))
        if entry_hash(dict(row._mapping)) != row.sHash:
            breaks.append(Break(row.sChain, row.iSeq, "changed"))
        last[row.sChain] = (row.iSeq, row.sHash)
    start = (0, GENESIS)
    torn = [c for c in sorted(known.keys() | last.keys()) if known.get(c, start) != last.get(c, start)]
    return breaks + [Break(chain, known.get(chain, start)[0], "head") for chain in torn]


def heads(connection: Connection) -> dict[str, tuple[int, str]]:
    """Chain → (number of entries, hash): what to keep outside the database to detect a rewritten tail."""
    return {
        row.sChain: (row.iSeq, row.sHash) for row in connection.execute(select(h.sChain, h.iSeq, h.sHash))
    }


def compare(connection: Connection, kept: Mapping[str, tuple[int, str]]) -> list[Break]:
    """Heads kept outside the database (as ``heads`` gave them) against the log: one "rewritten" per chain where the
    entry of that number is gone or another one. With ``verify`` this proves all up to the kept head untouched.
    """
    breaks = []
    for chain, (seq, digest) in sorted(kept.items()):
        found = connection.execute(select(a.sHash).where(a.sChain == chain, a.iSeq == seq)).scalar()
        if seq > 0 and found != digest:
            breaks.append(Break(chain, seq, "rewritten"))
    return breaks
