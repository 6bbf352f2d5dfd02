"""D16, D17: what tests/integration/test_audit_chain.py leaves: reordering; no change goes without its entry."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, select, update

from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind
from staging.services.control import ControlService
from staging.storage import audit
from staging.storage.tables import audit_head, audit_log
from tests.support.queue_rows import TENANT
from tests.support.world import PERSON, World
from tests.support.world_fixtures import only

pytestmark = only(lambda kind, shared: shared)
a = audit_log.c


def write(world: World, count: int) -> None:
    for number in range(count):
        entry = audit.AuditEntry(PERSON, "confirm", f"op{number}", {"n": number})
        world.store.transact(lambda unit, e=entry: audit.append(unit.connection, [e]))  # type: ignore[misc]


def reasons(world: World) -> dict[int, set[str]]:
    with world.store.read() as connection:
        found: dict[int, set[str]] = {}
        for one in audit.verify(connection):
            found.setdefault(one.seq, set()).add(one.reason)
        return found


def entries(world: World) -> list[dict[str, Any]]:
    with world.store.read() as connection:
        return [dict(row) for row in connection.execute(select(audit_log).order_by(a.iSeq)).mappings()]


def swap(world: World, one: int, other: int) -> None:
    with world.queue.begin() as connection:
        for before, after in ((one, 999), (other, one), (999, other)):
            connection.execute(update(audit_log).where(a.iSeq == before).values(iSeq=after))


def test_two_entries_that_changed_places_are_found(world: World) -> None:
    """D16: as they are, and with each one's hash made to fit its new place."""
    write(world, 5)
    assert reasons(world) == {}
    swap(world, 2, 3)
    found = reasons(world)
    assert {2, 3} <= found.keys()
    with world.queue.begin() as connection:
        for row in entries(world)[1:3]:
            digest = audit.entry_hash(row)
            connection.execute(update(audit_log).where(a.iSeq == row["iSeq"]).values(sHash=digest))
    assert reasons(world) != {}


def test_a_chain_rewritten_as_a_whole_is_found_by_a_head_kept_elsewhere(world: World) -> None:
    """D16: whoever holds the database can make a chain that verifies; not one with the head that was kept."""
    write(world, 5)
    with world.store.read() as connection:
        kept = audit.heads(connection)
    with world.queue.begin() as connection:
        connection.execute(delete(audit_log))
        connection.execute(delete(audit_head))
    with world.store.read() as connection:
        assert audit.verify(connection) == []  # nothing is a whole log: that is why a head is kept elsewhere
        assert [b.reason for b in audit.compare(connection, kept)] == ["rewritten"]
    write(world, 6)
    with world.store.read() as connection:
        assert audit.verify(connection) == []
        assert [b.reason for b in audit.compare(connection, kept)] == ["rewritten"]


def test_a_change_and_its_entry_come_together_or_not_at_all(world: World) -> None:
    """D17."""
    control = ControlService(world.store, world.adapter, world.teller)
    op_id = world.stage()
    moved = control.cancel(PERSON, op_id, "no longer")
    assert [(e["sAction"], e["sOpId"], e["sActor"]) for e in entries(world)] == [
        ("cancel", op_id, PERSON.user_id)
    ]
    for who in (PERSON, Actor(TENANT, "ops", ActorKind.OPERATOR)):
        with pytest.raises(Refused):
            control.cancel(who, op_id)
    assert (world.read(op_id), len(entries(world))) == (moved, 1)
    other = world.stage()
    with world.queue.begin() as connection:
        connection.execute(delete(audit_head))  # the append will meet an entry of that number
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        control.cancel(PERSON, other)
    assert world.verbs(other) == ["submit"]
    assert len(entries(world)) == 1
