"""Every change of status is a compare-and-set with its event; on three engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine, update

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Actor, ActorKind, new_id
from staging.domain.lifecycle import IllegalTransition, Verb
from staging.domain.operation import Operation
from staging.storage import claims, confirming, due, journal, operations
from staging.storage.dialect import db_now_plus
from staging.storage.tables import metadata, op_queue
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from tests.support.explain import plan_of
from tests.support.queue_rows import TENANT, foreign_insert, new_operation

_PLANS = ("hashagg", "hashjoin", "mergejoin", "sort", "material", "memoize", "indexscan", "bitmapscan")
PERSON = Actor(TENANT, "u-lin", ActorKind.PERSON)


@pytest.fixture
def store(engine: Engine) -> QueueStore:
    metadata.create_all(engine)
    return QueueStore(engine)


def insert(store: QueueStore, *rows: object) -> list[str]:
    made = [r if not isinstance(r, dict) else new_operation(**r) for r in rows or ({},)]
    store.transact(lambda unit: confirming.insert_confirmed(unit.connection, made, PERSON))  # type: ignore[arg-type]
    return [r.id for r in made]  # type: ignore[attr-defined]


def read(store: QueueStore, op_id: str) -> Operation:
    with store.read() as connection:
        return operations.by_ids(connection, [op_id])[0]


def claim(store: QueueStore, ids: list[str], lease_s: float = 60) -> list[Operation]:
    claimed, _ = store.transact(lambda unit: claims.claim(unit.connection, ids, new_id(), lease_s)[0])
    return claimed


def seqs(store: QueueStore, op_id: str) -> list[tuple[int, str, int]]:
    with store.read() as connection:
        return [(e.seq, e.verb, e.code) for e in journal.events(connection, op_id)]


def test_what_confirm_inserts_reads_back_exactly(store: QueueStore) -> None:
    payload = '{"title":"名片 😀","price":"123456789012345678.99"}'
    (op_id,) = insert(store, {"payload_json": payload, "maker": "u-林"})
    operation = read(store, op_id)
    assert (operation.payload_json, operation.maker, operation.tenant) == (payload, "u-林", TENANT)
    assert operation.created_at is not None
    assert operation.created_at.tzinfo is not None
    assert seqs(store, op_id) == [(1, "submit", 100)]


def test_a_claim_takes_many_in_order_and_counts_the_attempt(store: QueueStore) -> None:
    ids = insert(store, {}, {}, {})
    claimed = claim(store, [*reversed(ids), "unknown"])
    assert [o.id for o in claimed] == list(reversed(ids))
    assert {(o.code, o.attempt, o.seq) for o in claimed} == {(101, 1, 2)}
    assert len({o.lease_token for o in claimed}) == 1
    assert all(o.lease_until is not None for o in claimed)
    assert claim(store, ids) == []
    assert seqs(store, ids[0]) == [(1, "submit", 100), (2, "claim", 101)]


def test_a_row_tried_before_is_only_claimed_alone(store: QueueStore) -> None:
    fresh, tried = insert(store, {}, {})
    with store.begin() as unit:
        unit.connection.execute(update(op_queue).where(op_queue.c.sId == tried).values(iAttempt=1))
        unit.commit()
    assert [o.id for o in claim(store, [fresh, tried])] == [fresh]
    assert [o.id for o in claim(store, [tried])] == [tried]


def test_only_what_is_due_is_claimed(store: QueueStore) -> None:
    later, expired, now = insert(store, {}, {"expires_in_s": -1.0}, {})
    with store.begin() as unit:
        unit.connection.execute(
            update(op_queue).where(op_queue.c.sId == later).values(tNotBefore=db_now_plus(60))
        )
        unit.commit()
    with store.read() as connection:
        assert [d.id for d in due.due(connection, 10)] == [now]
        assert [o.id for o in operations.expired(connection, 10)] == [expired]
    assert [o.id for o in claim(store, [later, expired, now])] == [now]


def test_racing_claims_never_share_a_row(store: QueueStore) -> None:
    ids = insert(store, *({} for _ in range(60)))
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda n: [o.id for o in claim(store, ids[n * 5 :] + ids[: n * 5])], range(6)))
    flat = [i for some in taken for i in some]
    left = claim(store, ids)
    assert sorted(flat + [o.id for o in left]) == sorted(ids)


@pytest.mark.parametrize("forced", [False, True], ids=["as planned", "every plan forced away"])
def test_a_claim_takes_what_a_claim_under_way_has_left_and_waits_for_nothing(
    store: QueueStore, forced: bool
) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("one writer")
    if forced and store.engine.dialect.name != "postgresql":
        pytest.skip("PostgreSQL's planner may run a locking subquery again for each row (RELIABILITY B6)")
    ids = insert(store, *({} for _ in range(10)))
    changed = insert(store, {}, {})
    with store.begin() as first, store.begin() as second:
        for plan in _PLANS if forced else ():
            second.connection.exec_driver_sql(f"SET LOCAL enable_{plan} = off")
        held, _ = claims.claim(first.connection, ids[:4], "one", 60.0)
        left, told = claims.claim(second.connection, [*ids, changed[0]], "two", 60.0)
        first.commit()
        second.commit()
    assert [o.id for o in held] == ids[:4]
    assert [o.id for o in left] == [*ids[4:], changed[0]]
    assert [t.event.op_id for t in told] == [o.id for o in left]
    assert {o.lease_token for o in left} == {"two"}
    assert seqs(store, ids[4]) == [(1, "submit", 100), (2, "claim", 101)]
    assert read(store, changed[1]).code == C.SUBMITTED, "not named, not claimed"
    with store.read() as connection:
        (event, *_) = [e for e in journal.events(connection, ids[4]) if e.verb == "claim"]
    assert event.at == told[0].event.at, "what is told is what the journal says"


def test_a_stale_fencing_token_changes_nothing(store: QueueStore) -> None:
    (op_id,) = insert(store)
    (held,) = claim(store, [op_id], lease_s=-1)
    with store.read() as connection:
        (lapsed,) = operations.lapsed(connection, 10)
    taken, _ = store.transact(lambda u: operations.take_over(u.connection, lapsed, "new-token", 60))
    assert taken
    assert read(store, op_id).code == C.UNKNOWN

    def finish(unit: UnitOfWork) -> bool:
        return operations.move(unit.connection, Verb.FINISH, held, C.EXECUTED, token=held.lease_token)

    moved, _ = store.transact(finish)
    assert not moved
    assert read(store, op_id).lease_token == "new-token"
    assert [s for s, _, _ in seqs(store, op_id)] == [1, 2, 3]


def test_two_reconcilers_cannot_both_take_a_lapsed_lease(store: QueueStore) -> None:
    (op_id,) = insert(store)
    claim(store, [op_id], lease_s=-1)
    with store.read() as connection:
        (lapsed,) = operations.lapsed(connection, 10)
    first, _ = store.transact(lambda u: operations.take_over(u.connection, lapsed, "one", 60))
    second, _ = store.transact(lambda u: operations.take_over(u.connection, lapsed, "two", 60))
    assert (first, second) == (True, False)


def test_cancel_and_claim_have_exactly_one_winner(store: QueueStore) -> None:
    for _ in range(10):
        (op_id,) = insert(store)
        seen = read(store, op_id)

        def cancel(seen: Operation = seen) -> bool:
            moved, _ = store.transact(lambda u: operations.move(u.connection, Verb.CANCEL, seen, C.CANCELLED))
            return moved

        with ThreadPoolExecutor(2) as pool:
            cancelled = pool.submit(cancel)
            claimed = pool.submit(claim, store, [op_id])
            assert cancelled.result() != bool(claimed.result())
        assert read(store, op_id).code == (C.CANCELLED if cancelled.result() else C.RUNNING)


def test_a_move_that_the_lifecycle_does_not_list_raises(store: QueueStore) -> None:
    (op_id,) = insert(store)
    operation = read(store, op_id)
    with pytest.raises(IllegalTransition):
        store.transact(lambda u: operations.move(u.connection, Verb.FINISH, operation, C.EXECUTED, token="x"))
    with pytest.raises(IllegalTransition):
        store.transact(
            lambda u: operations.move(
                u.connection, Verb.RETRY, replace(operation, code=200, status="success"), C.SUBMITTED
            )
        )


def test_the_same_key_twice_is_key_taken_and_nothing_is_written(store: QueueStore) -> None:
    first, second = new_operation(idempotency_key="k"), new_operation(idempotency_key="k")
    insert(store, first)
    with pytest.raises(operations.KeyTaken):
        insert(store, new_operation(), second)
    with store.read() as connection:
        assert len(due.due(connection, 10)) == 1


def test_keys_differ_by_case_and_by_tenant(store: QueueStore) -> None:
    other = replace(TENANT, brands_id="B002")
    insert(
        store, {"idempotency_key": "A"}, {"idempotency_key": "a"}, {"idempotency_key": "A", "tenant": other}
    )


def test_a_row_of_plain_sql_has_every_default_it_needs(store: QueueStore) -> None:
    with store.begin() as unit:
        op_id = foreign_insert(unit.connection)
        unit.connection.commit()
    operation = read(store, op_id)
    assert (operation.seq, operation.attempt, operation.max_attempts, operation.priority) == (0, 0, 5, 0)
    assert operation.created_at is not None
    with store.read() as connection:
        assert [d.id for d in due.due(connection, 10, older_than_s=100)] == [op_id]
    assert claim(store, [op_id]) == []  # not before it has been admitted


def test_legacy_rows_are_shown_and_never_moved(store: QueueStore) -> None:
    with store.begin() as unit:
        op_id = foreign_insert(unit.connection, sStatus="executed", iStatusCode=100)
        unit.connection.commit()
    operation = read(store, op_id)
    assert (operation.status, operation.status_code) == ("executed", None)
    assert claim(store, [op_id]) == []
    with store.read() as connection:
        assert due.due(connection, 10) == []


def test_the_claim_query_uses_its_index_and_not_the_history(store: QueueStore) -> None:
    insert(store, *({} for _ in range(5)))
    with store.begin() as unit:
        plan = plan_of(unit.connection, due._DUE, limit=10, minus_age=-5.0)
        assert any(name in plan for name in ("ix_ai_op_queue_next", "ix_ai_op_queue_due_my"))
