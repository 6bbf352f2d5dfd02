"""What became of an operation whose worker is gone: only the ledger says, and silence is no answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import insert, text, update

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Actor, ActorKind
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.storage import operations
from staging.storage.dialect import db_now
from tests.support.effects_adapter import effects
from tests.support.queue_rows import TENANT
from tests.support.world import World
from workers.erp.tables import op_ledger

OPERATOR = Actor(TENANT, "ops", ActorKind.OPERATOR)


def commit_in_erp(world: World, operation: Operation, *, op_id: str = "", payload_hash: str = "") -> None:
    """What a worker had committed when it died; by the ledger for ``op_id``, with the content of ``payload_hash``."""
    said = replace(operation, id=op_id or operation.id, payload_hash=payload_hash or operation.payload_hash)
    with world.adapter.transaction() as tx:
        arguments = (tx.connection, said.tenant, operation.idempotency_key)
        world.adapter.ledger.insert_first(*arguments, said.id, said.command_type, said.payload_hash)
        tx.connection.execute(
            insert(effects).values(
                sOpId=said.id, sKey=operation.idempotency_key, sNote="", iPid=0, tAt=db_now()
            )
        )
        kept = {"resultBillId": "bill-1", "message": {"zh": "已建", "en": "made"}, "result": {}}
        world.adapter.ledger.store_result(*arguments, kept)
        tx.commit()


def lost(world: World, op_id: str) -> Operation:
    """Claimed by a worker whose lease has lapsed."""
    world.claim(op_id)
    world.lapse(op_id)
    return world.read(op_id)


def test_found_ends_with_the_result_of_the_execution_that_committed(world: World) -> None:
    op_id = world.stage()
    commit_in_erp(world, lost(world, op_id))
    world.reconciler.resolve(world.read(op_id))
    done = world.read(op_id)
    assert (done.status_code, done.result_bill_id, done.result_message) == (C.EXECUTED, "bill-1", "已建")
    assert world.verbs(op_id) == ["submit", "claim", "lose", "resolve"]
    world.oracle.verdict().require_sound()


def test_found_under_another_operations_name_is_201(world: World) -> None:
    op_id = world.stage()
    commit_in_erp(world, lost(world, op_id), op_id="an-older-operation")
    world.reconciler.resolve(world.read(op_id))
    done = world.read(op_id)
    assert (done.status_code, done.result_bill_id) == (C.EXECUTED_BEFORE, "bill-1")
    assert world.effects(op_id) == 0


def test_another_operations_entry_with_other_content_is_409(world: World) -> None:
    op_id = world.stage()
    commit_in_erp(world, lost(world, op_id), op_id="an-older-operation", payload_hash="sha256:other")
    world.reconciler.resolve(world.read(op_id))
    done = world.read(op_id)
    assert (done.status_code, done.error_code) == (C.CONFLICT, "idempotency_conflict")


def test_its_own_entry_with_other_content_is_a_riddle_that_stays_102(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    # Something happened under this id, and not what the row says now: neither success nor "nothing was done".
    op_id = world.stage()
    commit_in_erp(world, lost(world, op_id), payload_hash="sha256:other")
    for _ in range(2):
        world.sweeper.sweep()
        assert world.code(op_id) is C.UNKNOWN
        world.lapse(op_id)
    assert world.run(op_id) == 0
    assert "other content" in caplog.text


def test_absent_goes_back_to_100_with_its_attempt_counted_and_waits_a_little(world: World) -> None:
    op_id = world.stage()
    lost(world, op_id)
    world.reconciler.resolve(world.read(op_id))
    again = world.read(op_id)
    assert (again.status_code, again.attempt) == (C.SUBMITTED, 1)
    assert again.not_before is not None
    assert world.settle(op_id)[0].attempt == 2
    world.oracle.verdict().require_sound()


def test_absent_after_the_last_attempt_is_500_and_says_that_workers_died(world: World) -> None:
    op_id = world.stage(max_attempts=2)
    for _ in range(2):
        world.set([op_id], tNotBefore=None)
        lost(world, op_id)
        world.sweeper.sweep()
    done = world.read(op_id)
    assert (done.status_code, done.attempt) == (C.UNEXPECTED, 2)
    assert "2" in (done.error_message or "")
    world.oracle.verdict().require_sound()


def test_a_person_may_retry_what_ran_out_of_attempts_and_then_it_runs(world: World) -> None:
    # Fences of the lost attempts are still in the ERP; they must not bar the new ones.
    op_id = world.stage(max_attempts=1)
    lost(world, op_id)
    world.sweeper.sweep()
    failed = world.read(op_id)
    assert failed.status_code is C.UNEXPECTED
    retried, _ = world.store.transact(
        lambda unit: operations.move(
            unit.connection, Verb.RETRY, failed, C.SUBMITTED, actor=OPERATOR, changes={"iAttempt": 0}
        )
    )
    assert retried
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    world.oracle.verdict().require_sound()


def test_a_ledger_row_that_somebody_holds_is_no_answer(world: World) -> None:
    op_id = world.stage()
    operation = lost(world, op_id)
    if world.kind == "sqlite" and world.shared:
        return  # who holds the file holds the queue as well: nothing can be taken over meanwhile
    with world.adapter.transaction() as tx:
        world.adapter.ledger.insert_first(
            tx.connection, operation.tenant, operation.idempotency_key, op_id, "x", operation.payload_hash
        )
        world.reconciler.resolve(operation)
        assert world.code(op_id) is C.UNKNOWN
        world.lapse(op_id)
        world.reconciler.resolve(world.read(op_id))
        assert world.code(op_id) is C.UNKNOWN
    assert world.verbs(op_id) == ["submit", "claim", "lose"]
    world.lapse(op_id)
    world.sweeper.sweep()
    assert world.code(op_id) is C.SUBMITTED


def test_reconcilers_racing_for_one_operation_write_one_end(world: World) -> None:
    ids = [world.stage() for _ in range(6)]
    for op_id in ids[:3]:
        commit_in_erp(world, lost(world, op_id))
    for op_id in ids[3:]:
        lost(world, op_id)
    with ThreadPoolExecutor(3) as pool:  # in several rounds, should one run out of its time
        list(pool.map(lambda _: world.sweeper.sweep(), range(9)))
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 3 + [C.SUBMITTED] * 3
    assert {tuple(world.verbs(i)) for i in ids} == {("submit", "claim", "lose", "resolve")}
    world.settle(*ids)
    world.oracle.verdict().require_sound()


def test_an_operation_that_moved_on_since_it_was_read_is_left_alone(world: World) -> None:
    op_id = world.stage()
    stale = lost(world, op_id)
    world.reconciler.resolve(stale)
    world.settle(op_id)
    done = world.read(op_id)
    world.reconciler.resolve(stale)
    assert world.read(op_id) == done


def test_a_live_lease_is_nobodys_business(world: World) -> None:
    op_id = world.stage()
    world.claim(op_id, lease_s=60)
    world.sweeper.sweep()
    assert world.code(op_id) is C.RUNNING
    assert world.verbs(op_id) == ["submit", "claim"]


def test_one_row_that_cannot_be_resolved_holds_up_no_other(world: World) -> None:
    broken, fine = world.stage(), world.stage()
    for op_id in (broken, fine):
        commit_in_erp(world, lost(world, op_id))
    with world.erp.begin() as connection:
        # A result somebody damaged; PostgreSQL's column takes no broken JSON, so one of the wrong shape.
        connection.execute(
            update(op_ledger).where(op_ledger.c.sOpId == broken).values(sResult=text("'[\"not an object\"]'"))
        )
    world.lapse(broken, fine)
    with pytest.raises(AttributeError):  # not hidden either: the task fails, once all others had their turn
        world.sweeper.sweep()
    assert world.code(fine) is C.EXECUTED
    assert world.code(broken) is C.UNKNOWN
