"""One effect per key: twins meet at the ledger row, absence is proven, a fenced attempt cannot commit. Three engines.

Order of events is forced with real connections in threads: a thread is observed to be waiting (it has not finished
after a while, and finishes once released), never assumed to be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as NotYet
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from staging.domain.identity import Tenant, new_id
from staging.domain.ports import LedgerEntry
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.dialect import db_now
from staging.storage.engine import make_engine
from tests.support.waiting import wait_until
from workers.erp.ledger import SqlLedger
from workers.erp.tables import erp_metadata, op_ledger

TENANT = Tenant("1111111111", "1111111111")
LEDGER = SqlLedger()
WAITS_S = 0.25  # a call that has not come back after this long is waiting for a lock


@pytest.fixture(autouse=True)
def _tables(engine: Engine) -> None:
    erp_metadata.create_all(engine)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield pool


def first(
    connection: Connection, key: str, op_id: str = "op1", tenant: Tenant = TENANT
) -> LedgerEntry | None:
    return LEDGER.insert_first(connection, tenant, key, op_id, "erp.x.create", "sha256:aa")


def in_flight(call: Future[Any]) -> bool:
    try:
        call.result(WAITS_S)
    except NotYet:
        return True
    return False


def rows(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(op_ledger)).scalar_one()


def test_the_first_insert_says_none_and_the_second_gets_the_first_result(engine: Engine) -> None:
    with engine.begin() as connection:
        assert first(connection, "k1") is None
        LEDGER.store_result(connection, TENANT, "k1", {"billId": "b1", "total": Decimal("0.10"), "名": "😀"})
    with engine.begin() as connection:
        entry = first(connection, "k1", op_id="op2")
        assert entry == LedgerEntry(
            "op1", "erp.x.create", "sha256:aa", {"billId": "b1", "total": "0.10", "名": "😀"}
        )
        # The transaction is still usable after the conflict (RELIABILITY B13).
        assert connection.execute(text("SELECT 1")).scalar() == 1
    assert rows(engine) == 1


def test_a_rolled_back_insert_leaves_the_key_free(engine: Engine) -> None:
    with engine.connect() as connection:
        first(connection, "k1")
        connection.rollback()
    with engine.begin() as connection:
        assert first(connection, "k1", op_id="op2") is None


def test_keys_differ_by_case_and_belong_to_their_tenant(engine: Engine) -> None:
    other_brand, other_subsidiary = Tenant("2222222222", "1111111111"), Tenant("1111111111", "2222222222")
    with engine.begin() as connection:
        assert first(connection, "key") is None
        assert first(connection, "KEY") is None
        assert first(connection, "key", tenant=other_brand) is None
        assert first(connection, "key", tenant=other_subsidiary) is None
        assert first(connection, "key", op_id="again") is not None
    with engine.connect() as connection:
        assert LEDGER.lookup(connection, Tenant("3", "3"), "key") is None


def test_only_a_duplicate_key_counts_as_a_conflict(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps strings of any length, so nothing else can go wrong with this insert")
    with engine.connect() as connection, pytest.raises(DBAPIError) as raised:
        first(connection, "k" * 200)
    assert classify_db_error(raised.value) is DbFailure.DATA
    assert rows(engine) == 0


def test_a_result_without_its_row_is_refused(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(RuntimeError, match="gone"):
        LEDGER.store_result(connection, TENANT, "nowhere", {})


def test_the_creation_time_is_the_databases_own(engine: Engine) -> None:
    with engine.begin() as connection:
        first(connection, "k1")
    with engine.connect() as connection:
        created, now = connection.execute(select(op_ledger.c.tCreateDate, db_now())).one()
    assert 0 <= (now - created).total_seconds() < 5


@pytest.mark.parametrize("first_commits", [True, False])
def test_a_twin_waits_for_the_first_then_reads_its_result_or_runs_itself(
    engine: Engine, threads: ThreadPoolExecutor, first_commits: bool
) -> None:
    def twin() -> LedgerEntry | None:
        with engine.begin() as connection:
            return first(connection, "k1", op_id="op2")

    with engine.connect() as connection:
        first(connection, "k1")
        LEDGER.store_result(connection, TENANT, "k1", {"billId": "b1"})
        second = threads.submit(twin)
        assert in_flight(second)
        connection.commit() if first_commits else connection.rollback()
    entry = second.result(5)
    assert (entry is not None) == first_commits
    if entry is not None:
        assert (entry.op_id, entry.result) == ("op1", {"billId": "b1"})
    assert rows(engine) == 1


def test_three_twins_whose_first_rolls_back_end_with_one_row_and_at_worst_a_deadlock(
    engine: Engine, threads: ThreadPoolExecutor
) -> None:
    """RELIABILITY B8: InnoDB may pick one of the waiting two as a deadlock victim; it runs again as a whole."""

    def twin(op_id: str) -> LedgerEntry | DbFailure | None:
        try:
            with engine.begin() as connection:
                return first(connection, "k1", op_id=op_id)
        except DBAPIError as error:
            return classify_db_error(error)

    with engine.connect() as connection:
        first(connection, "k1")
        others = [threads.submit(twin, f"op{n}") for n in (2, 3)]
        assert in_flight(others[0])
        connection.rollback()
    answers = [call.result(5) for call in others]
    assert answers.count(None) == 1, answers
    lost = next(a for a in answers if a is not None)
    assert lost is DbFailure.DEADLOCK or isinstance(lost, LedgerEntry)
    if engine.dialect.name == "mysql" and lost is not DbFailure.DEADLOCK:
        pytest.fail("InnoDB no longer deadlocks here; RELIABILITY B8 should be read again")
    assert twin("op9") == LedgerEntry(
        next(f"op{n}" for n, a in zip((2, 3), answers, strict=True) if a is None),
        "erp.x.create",
        "sha256:aa",
        None,
    )
    assert rows(engine) == 1


def test_lookup_finds_what_was_committed_and_proves_absence_without_leaving_a_row(engine: Engine) -> None:
    with engine.begin() as connection:
        first(connection, "k1")
        LEDGER.store_result(connection, TENANT, "k1", {"billId": "b1"})
    with engine.connect() as connection:
        found = LEDGER.lookup(connection, TENANT, "k1")
        assert found is not None
        assert found.result == {"billId": "b1"}
        assert LEDGER.lookup(connection, TENANT, "k2") is None
        connection.commit()  # even if the caller commits, a probe is no entry
    assert rows(engine) == 1


def test_lookup_while_a_twin_is_in_flight_is_an_error_and_never_absent(
    database_url: str, engine: Engine
) -> None:
    hasty = make_engine(database_url, lock_timeout_s=1)
    try:
        with engine.connect() as twin:
            first(twin, "k1")
            with pytest.raises(DBAPIError) as raised, hasty.connect() as connection:
                LEDGER.lookup(connection, TENANT, "k1")
            assert classify_db_error(raised.value) in {DbFailure.LOCK_TIMEOUT, DbFailure.BUSY}
            twin.commit()
        with hasty.connect() as connection:
            assert LEDGER.lookup(connection, TENANT, "k1") is not None
    finally:
        hasty.dispose()


def test_a_fence_never_goes_down(engine: Engine) -> None:
    with engine.begin() as connection:
        assert not LEDGER.is_fenced(connection, "op1", 1)
        LEDGER.fence(connection, "op1", 2)
        LEDGER.fence(connection, "op1", 1)
        assert [LEDGER.is_fenced(connection, "op1", n) for n in (1, 2, 3)] == [True, True, False]
        assert not LEDGER.is_fenced(connection, "op2", 1)
        LEDGER.fence(connection, "op1", 4)
        assert LEDGER.is_fenced(connection, "op1", 4)


def reconcile(engine: Engine, key: str, op_id: str, attempt: int) -> LedgerEntry | None:
    """What the reconciler does with separate databases: fence, commit, look up."""
    with engine.begin() as connection:
        LEDGER.fence(connection, op_id, attempt)
    with engine.connect() as connection:
        return LEDGER.lookup(connection, TENANT, key)


def attempt_1(engine: Engine, key: str, op_id: str, pause: Callable[[], object] = lambda: None) -> bool:
    """What the executor does: ledger row, ``pause``, fence check, commit. True if it committed."""
    with engine.connect() as connection:
        if first(connection, key, op_id=op_id) is not None:
            return False
        pause()
        if LEDGER.is_fenced(connection, op_id, 1):
            return False
        LEDGER.store_result(connection, TENANT, key, {"billId": "b1"})
        connection.commit()
        return True


def test_an_attempt_ahead_of_the_reconciler_is_waited_for_and_found(
    engine: Engine, threads: ThreadPoolExecutor
) -> None:
    inserted, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        inserted.set()
        assert go_on.wait(5)

    def patient() -> LedgerEntry | None:
        return wait_until_answered(lambda: reconcile_lookup_only(engine))

    attempt = threads.submit(attempt_1, engine, "k1", "op1", pause)
    assert inserted.wait(5)
    # The attempt has its row; it will be asked about the fence after this lookup began to wait for it.
    answer = threads.submit(patient)
    assert in_flight(answer)
    go_on.set()
    assert attempt.result(5) is True
    found = answer.result(8)
    assert found is not None
    assert found.result == {"billId": "b1"}


def reconcile_lookup_only(engine: Engine) -> LedgerEntry | None:
    with engine.connect() as connection:
        return LEDGER.lookup(connection, TENANT, "k1")


def wait_until_answered(ask: Callable[[], LedgerEntry | None]) -> LedgerEntry | None:
    """Repeat a lookup that failed for want of a lock, as the sweeper would."""
    answer: list[LedgerEntry | None] = []

    def once() -> bool:
        try:
            answer.append(ask())
        except DBAPIError as error:
            if classify_db_error(error).is_transient:
                return False
            raise
        return True

    wait_until(once, 8, "an answer of the ledger")
    return answer[0]


def test_an_attempt_behind_the_reconciler_sees_the_fence_and_cannot_commit(engine: Engine) -> None:
    """The stalled worker wakes up after *absent* was answered: it may insert its row, but must not commit."""
    assert reconcile(engine, "k1", "op1", 1) is None
    assert attempt_1(engine, "k1", "op1") is False
    assert rows(engine) == 0
    with engine.begin() as connection:  # the next attempt is not barred
        assert first(connection, "k1") is None
        assert not LEDGER.is_fenced(connection, "op1", 2)


def test_an_attempt_that_began_its_transaction_before_the_fence_still_sees_it(
    engine: Engine, threads: ThreadPoolExecutor
) -> None:
    """The fence commits between the attempt's BEGIN and its insert: no snapshot of the past may hide it (B2)."""
    if engine.dialect.name == "sqlite":
        pytest.skip("BEGIN IMMEDIATE: no fence can commit while the attempt's transaction is open")
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        assert not LEDGER.is_fenced(connection, "op0", 1)  # has looked at the table already
        assert threads.submit(reconcile, engine, "k1", "op1", 1).result(5) is None
        assert first(connection, "k1") is None
        assert LEDGER.is_fenced(connection, "op1", 1)


def test_attempts_racing_the_reconciler_never_commit_after_absent(
    engine: Engine, threads: ThreadPoolExecutor
) -> None:
    """40 races per engine, whichever order comes out: committed and *absent* exclude each other."""
    outcomes: list[tuple[bool, bool]] = []
    for n in range(40):
        key, op_id = f"k{n}", new_id()
        barrier = threading.Barrier(2)

        def run(key: str = key, op_id: str = op_id, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(5)
            return attempt_1(engine, key, op_id)

        attempt = threads.submit(run)
        barrier.wait(5)
        answer = wait_until_answered(lambda key=key, op_id=op_id: reconcile(engine, key, op_id, 1))  # type: ignore[misc]
        outcomes.append((attempt.result(5), answer is None))
    assert all(committed != absent for committed, absent in outcomes), outcomes
