"""I12: the audit chain verifies; a changed, missing or cut-off entry is found; concurrent writers do not fork it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, delete, update

from staging.domain.identity import Actor, ActorKind, Tenant
from staging.storage import audit
from staging.storage.audit import AuditEntry, Break
from staging.storage.tables import audit_head, audit_log, metadata
from staging.storage.unit_of_work import QueueStore

ACTOR = Actor(Tenant("B001", "S01"), "u-林", ActorKind.PERSON)
OTHER = Actor(Tenant("B002", "S01"), "u-other", ActorKind.PERSON)
a = audit_log.c


@pytest.fixture
def store(engine: Engine) -> QueueStore:
    metadata.create_all(engine)
    store = QueueStore(engine)
    for number in range(5):
        entries = [
            AuditEntry(ACTOR, "confirm", f"op{number}", {"金额": "1.00", "n": number}),
            AuditEntry(OTHER, "cancel"),
        ]
        store.transact(lambda unit, e=entries: audit.append(unit.connection, e))  # type: ignore[misc]
    return store


def breaks(store: QueueStore) -> list[Break]:
    with store.read() as connection:
        return audit.verify(connection)


def spoil(store: QueueStore, statement: object) -> None:
    with store.begin() as unit:
        unit.connection.execute(statement)  # type: ignore[call-overload]
        unit.connection.commit()


def test_an_untouched_chain_verifies(store: QueueStore) -> None:
    assert breaks(store) == []
    with store.read() as connection:
        assert {chain: seq for chain, (seq, _) in audit.heads(connection).items()} == {
            "B001/S01": 5,
            "B002/S01": 5,
        }


@pytest.mark.parametrize("column", ["jDetail", "sActor", "sAction", "sOpId"])
def test_a_changed_entry_is_found(store: QueueStore, column: str) -> None:
    spoil(store, update(audit_log).where(a.sChain == "B001/S01", a.iSeq == 3).values({column: '{"n":9}'}))
    assert Break("B001/S01", 3, "changed") in breaks(store)


def test_a_deleted_middle_entry_is_found(store: QueueStore) -> None:
    spoil(store, delete(audit_log).where(a.sChain == "B001/S01", a.iSeq == 3))
    assert Break("B001/S01", 3, "missing") in breaks(store)


def test_a_cut_off_tail_is_found_by_the_head(store: QueueStore) -> None:
    spoil(store, delete(audit_log).where(a.sChain == "B001/S01", a.iSeq >= 4))
    assert breaks(store) == [Break("B001/S01", 5, "head")]


def test_a_wholly_deleted_chain_is_found_by_the_head(store: QueueStore) -> None:
    spoil(store, delete(audit_log).where(a.sChain == "B002/S01"))
    assert breaks(store) == [Break("B002/S01", 5, "head")]


def test_a_deleted_head_is_found(store: QueueStore) -> None:
    spoil(store, delete(audit_head).where(audit_head.c.sChain == "B001/S01"))
    assert [b.reason for b in breaks(store)] == ["head"]


def test_twenty_writers_at_once_do_not_fork_the_chain(store: QueueStore) -> None:
    def write(number: int) -> None:
        store.transact(lambda unit: audit.append(unit.connection, [AuditEntry(ACTOR, "retry", f"x{number}")]))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(20)))
    assert breaks(store) == []
    with store.read() as connection:
        assert audit.heads(connection)["B001/S01"][0] == 25
