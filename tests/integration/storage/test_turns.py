"""Tenants take turns: whose due rows come next, on three engines."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text, update

from staging.domain.identity import Actor, ActorKind, Tenant
from staging.storage import claims, confirming, due
from staging.storage.dialect import db_now_plus, is_mysql
from staging.storage.tables import metadata, op_queue
from staging.storage.unit_of_work import QueueStore
from tests.support.explain import plan_of
from tests.support.queue_rows import new_operation

A, A2, B, C = Tenant("A", "1"), Tenant("A", "2"), Tenant("B", "1"), Tenant("C", "0")


@pytest.fixture
def store(engine: Engine) -> QueueStore:
    metadata.create_all(engine)
    return QueueStore(engine)


def add(store: QueueStore, tenant: Tenant, count: int, **columns: object) -> list[str]:
    rows = [new_operation(tenant=tenant) for _ in range(count)]
    ids = [row.id for row in rows]
    person = Actor(tenant, "u-lin", ActorKind.PERSON)
    store.transact(lambda unit: confirming.insert_confirmed(unit.connection, rows, person))
    if columns:
        with store.begin() as unit:
            unit.connection.execute(update(op_queue).where(op_queue.c.sId.in_(ids)).values(**columns))
            unit.commit()
    return ids


def turns(store: QueueStore, count: int, limit: int = 10) -> list[tuple[Tenant | None, list[str]]]:
    turn: Tenant | None = None
    found = []
    with store.read() as connection:
        for _ in range(count):
            turn, rows = due.in_turn(connection, turn, limit)
            found.append((turn, [row.id for row in rows]))
    return found


def test_every_tenant_with_due_rows_has_its_turn_whatever_another_has_waiting(store: QueueStore) -> None:
    add(store, A2, 30)
    single, others = add(store, B, 1), add(store, A, 2)
    add(store, C, 3, tNotBefore=db_now_plus(60))
    found = turns(store, 6)
    assert [tenant for tenant, _ in found] == [A, A2, B, A, A2, B]
    assert set(found[0][1]) == set(others)
    assert len(found[1][1]) == 10
    assert found[2][1] == single


def test_a_tenant_is_at_work_while_a_row_of_its_own_runs(store: QueueStore) -> None:
    (running,) = add(store, A, 1)
    add(store, A2, 1)
    with store.read() as connection:
        assert not due.is_at_work(connection, A)
    store.transact(lambda unit: claims.claim(unit.connection, [running], "token", 60.0))
    with store.read() as connection:
        assert [due.is_at_work(connection, tenant) for tenant in (A, A2, B)] == [True, False, False]


def test_within_a_tenant_higher_priority_comes_first_then_age(store: QueueStore) -> None:
    late = add(store, A, 1, tCreateDate=db_now_plus(-10), iPriority=5)
    early = add(store, A, 1, tCreateDate=db_now_plus(-20), iPriority=5)
    add(store, A, 3, tCreateDate=db_now_plus(-100))
    assert turns(store, 1) == [(A, early + late)]


def test_a_priority_that_is_not_due_yet_hides_nothing_behind_it(store: QueueStore) -> None:
    add(store, A, 1, iPriority=9, tNotBefore=db_now_plus(60))
    ordinary = add(store, A, 2)
    ((_, found),) = turns(store, 1)
    assert set(found) == set(ordinary)


def test_rows_without_tenant_are_found_when_nobody_else_has_any(store: QueueStore) -> None:
    nameless = add(store, Tenant("", ""), 1)
    assert turns(store, 1) == [(None, nameless)]


def test_nothing_due_is_nobodys_turn(store: QueueStore) -> None:
    assert turns(store, 1) == [(None, [])]


def test_finding_the_next_turn_uses_its_index(store: QueueStore) -> None:
    for number in range(30):
        add(store, Tenant(f"T{number}", "1"), 20)
    with store.begin() as unit:
        unit.connection.execute(
            text("ANALYZE TABLE ai_op_queue" if is_mysql(unit.connection.dialect) else "ANALYZE")
        )
        next_tenant = due._NEXT_MYSQL if is_mysql(unit.connection.dialect) else due._NEXT
        assert "ix_ai_op_queue_turn" in plan_of(unit.connection, next_tenant, b="T7", s="1")
        assert "ix_ai_op_queue_turn" in plan_of(unit.connection, due._DUE_OF, b="T7", s="1", limit=10)
