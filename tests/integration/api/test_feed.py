"""The feed on three databases: pages, audiences, and transactions that commit late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import Engine, update

from staging.contracts.status import StatusCode
from staging.domain.cursor import MAX_SEEN, Cursor, load_cursor
from staging.domain.identity import Actor, Tenant
from staging.domain.lifecycle import Verb
from staging.domain.operation import Told
from staging.storage import confirming, feed, operations
from staging.storage.dialect import db_now_plus
from staging.storage.feed import PAGE, Audience
from staging.storage.tables import metadata, op_event
from staging.storage.unit_of_work import QueueStore
from tests.support.queue_rows import TENANT, new_operation

LIN = Audience(TENANT, "u-lin")
EVERYBODY = Audience(TENANT, None)
ACTOR = Actor(TENANT, "u-lin")
Keys = list[tuple[str, int]]


@pytest.fixture
def store(engine: Engine) -> Iterator[QueueStore]:
    metadata.create_all(engine)
    made = QueueStore(engine)
    yield made
    made.close()


def insert(store: QueueStore, count: int = 1, **changes: object) -> list[str]:
    rows = [new_operation(**changes) for _ in range(count)]
    store.transact(lambda unit: confirming.insert_confirmed(unit.connection, rows, ACTOR))
    return [row.id for row in rows]


def cancel(store: QueueStore, op_id: str) -> None:
    with store.begin() as unit:
        (operation,) = operations.by_ids(unit.connection, [op_id])
        assert operations.move(unit.connection, Verb.CANCEL, operation, StatusCode.CANCELLED, actor=ACTOR)
        unit.commit()


def begin(store: QueueStore, audience: Audience = LIN) -> Cursor:
    with store.read() as connection:
        return feed.start(connection, audience)


def since(store: QueueStore, cursor: Cursor, audience: Audience = LIN) -> list[Told]:
    with store.read() as connection:
        return feed.since(connection, audience, cursor)


def heard(cursor: Cursor, told: Sequence[Told]) -> Keys:
    for one in told:
        cursor.advance(one.event.op_id, one.event.seq, one.event.at)
    return [(one.event.op_id, one.event.seq) for one in told]


def all_since(store: QueueStore, cursor: Cursor, audience: Audience = LIN) -> Keys:
    keys: Keys = []
    while page := since(store, cursor, audience):
        assert len(page) <= PAGE
        keys += heard(cursor, page)
    return keys


def test_a_long_backlog_comes_in_pages_without_gap_or_duplicate(store: QueueStore) -> None:
    cursor = begin(store)
    ids = insert(store, PAGE + 300)
    for op_id in ids[:50]:
        cancel(store, op_id)
    keys = all_since(store, cursor)
    assert sorted(keys) == sorted([(i, 1) for i in ids] + [(i, 2) for i in ids[:50]])
    for op_id in ids[:50]:
        assert [seq for one, seq in keys if one == op_id] == [1, 2]


def test_a_cursor_resumed_after_each_event_gives_the_rest(store: QueueStore) -> None:
    cursor = begin(store)
    ids = insert(store, 8)
    for op_id in ids:
        cancel(store, op_id)
    whole: Keys = []
    for _ in range(16):
        told = since(store, cursor)
        whole += heard(cursor, told[:1])
        resumed = load_cursor(cursor.dump())
        assert resumed is not None
        cursor = resumed
    assert since(store, cursor) == []
    assert sorted(whole) == sorted((i, seq) for i in ids for seq in (1, 2))


def test_what_was_there_before_is_not_told(store: QueueStore) -> None:
    insert(store, MAX_SEEN // 2)
    cursor = begin(store)
    assert since(store, cursor) == []
    (later,) = insert(store)
    assert all_since(store, cursor) == [(later, 1)]


def test_each_hears_their_own_and_an_operator_the_tenants(store: QueueStore) -> None:
    cursors = {audience: begin(store, audience) for audience in (LIN, Audience(TENANT, "u-chen"), EVERYBODY)}
    (lin,) = insert(store)
    (chen,) = insert(store, maker="u-chen")
    insert(store, tenant=Tenant("B002", "S01"))
    insert(store, tenant=Tenant("B001", "S02"))
    found = {audience: {op for op, _ in all_since(store, c, audience)} for audience, c in cursors.items()}
    assert list(found.values()) == [{lin}, {chen}, {lin, chen}]


def test_reading_by_operation_tells_the_same_and_only_ones_own(store: QueueStore) -> None:
    cursor = begin(store)
    mine = insert(store, 3)
    theirs = insert(store, 2, maker="u-chen")
    with store.read() as connection:
        told = feed.of_operations(connection, LIN, cursor, [*theirs, *mine, "none"])
    assert sorted(heard(cursor, told)) == sorted((i, 1) for i in mine)
    assert since(store, cursor) == []


def test_a_transaction_that_commits_late_is_still_heard(store: QueueStore, database_kind: str) -> None:
    """Its event has an earlier time than others that were told meanwhile."""
    if database_kind == "sqlite":
        pytest.skip("SQLite has one writer: nothing can overtake a transaction")
    (slow,) = insert(store)
    cursor = begin(store)
    with store.begin() as unit:
        (operation,) = operations.by_ids(unit.connection, [slow])
        operations.move(unit.connection, Verb.CANCEL, operation, StatusCode.CANCELLED, actor=ACTOR)
        (quick,) = insert(store)
        assert all_since(store, cursor) == [(quick, 1)]
        resumed = load_cursor(cursor.dump())
        unit.commit()
    assert resumed is not None
    assert all_since(store, resumed) == [(slow, 2)]
    assert all_since(store, cursor) == [(slow, 2)]


def test_an_operations_own_order_holds_even_if_a_clock_was_set_back(store: QueueStore) -> None:
    cursor = begin(store)
    (op_id,) = insert(store)
    cancel(store, op_id)
    with store.begin() as unit:
        second = (op_event.c.sOpId == op_id) & (op_event.c.iSeq == 2)
        unit.connection.execute(update(op_event).where(second).values(tCreateDate=db_now_plus(-20)))
        unit.connection.commit()
    assert all_since(store, cursor) == [(op_id, 1), (op_id, 2)]


def test_an_old_event_says_what_was_then(store: QueueStore) -> None:
    cursor = begin(store)
    (op_id,) = insert(store)
    cancel(store, op_id)
    first, second = since(store, cursor)
    assert (first.event.code, first.event.status) == (100, "pending")
    assert (second.event.code, second.event.status) == (450, "fail")
    assert first.event.message != second.event.message
