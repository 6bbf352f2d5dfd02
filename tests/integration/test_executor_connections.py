"""The line to the database breaks: before COMMIT it is tried again, during COMMIT only the ledger knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from staging.contracts.status import StatusCode as C
from staging.domain.errors import Transient
from staging.storage.dialect import db_now_plus, is_mysql
from tests.support.alarm import TimeLimit, raising_when
from tests.support.private import EmbeddedRedis
from tests.support.tcp_proxy import TcpProxy, Trip, proxied
from tests.support.world import Databases, World
from tests.support.world_fixtures import only
from workers.executor import Executor

Flag = Callable[[str], str]
WRITE = {"do": "write"}
pytestmark = only(lambda kind, shared: kind != "sqlite")  # which has no line that could break


@pytest.fixture
def proxy(where: Databases) -> Iterator[tuple[TcpProxy, str]]:
    with proxied(where.erp_url) as made:
        yield made


@pytest.fixture
def world(where: Databases, proxy: tuple[TcpProxy, str], session_redis: EmbeddedRedis) -> Iterator[World]:
    """The worker reaches the ERP (and the queue, where they share a database) through the proxy."""
    url = proxy[1]
    urls = {"database_url": url} if where.shared else {"erp_database_url": url}
    made = World(where, session_redis.url, **urls)
    made.wipe()
    yield made
    made.close()


@pytest.fixture
def line(proxy: tuple[TcpProxy, str]) -> TcpProxy:
    return proxy[0]


def resolved(world: World, op_id: str) -> list[str]:
    """Let the lease lapse and sweep; returns the verbs so far."""
    world.lapse(op_id)
    world.sweeper.sweep()
    return world.verbs(op_id)


def test_a_connection_killed_in_mid_transaction_is_tried_again(world: World, flag: Flag) -> None:
    op_id = world.stage(WRITE, {"do": "once", "file": flag("hung-up"), "steps": [{"do": "hang_up"}]}, WRITE)
    world.run(op_id)
    waiting = world.read(op_id)
    assert (waiting.status_code, waiting.attempt, waiting.error_code) == (C.SUBMITTED, 1, "unavailable")
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 2)
    assert world.effects(op_id) == 2  # the two of one execution: the step writes twice


def test_a_server_that_cannot_be_reached_costs_an_attempt_and_the_next_one_succeeds(
    world: World, line: TcpProxy
) -> None:
    op_id = world.stage(max_attempts=2)
    if world.shared:
        world.claim(op_id)  # claimed by a worker that is gone; nobody can reach the queue either
        line.cut()
        world.sweeper.sweep()  # logged, not raised
        line.restore()
        assert resolved(world, op_id)[-2:] == ["lose", "resolve"]
    else:
        line.cut()
        world.run(op_id)
        assert world.code(op_id) is C.SUBMITTED
        line.restore()
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 2)
    world.oracle.verdict().require_sound()


def test_a_line_that_breaks_before_the_commit_arrives_is_resolved_as_absent_and_executed_again(
    world: World, line: TcpProxy
) -> None:
    op_id = world.stage(note="trip-before")
    line.arm("trip-before", Trip.BEFORE_COMMIT)
    world.run(op_id)
    assert line.tripped.is_set()
    assert world.verbs(op_id) == ["submit", "claim", "lose", "resolve"]
    assert world.code(op_id) is C.SUBMITTED
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 2)
    world.oracle.verdict().require_sound()


def test_a_line_that_breaks_after_the_commit_is_resolved_as_found(world: World, line: TcpProxy) -> None:
    op_id = world.stage(note="trip-after")
    line.arm("trip-after", Trip.AFTER_COMMIT)
    world.run(op_id)
    assert line.tripped.is_set()
    # Shared: the write-back was in that commit. Separate: the ledger told.
    expected = ["finish"] if world.shared else ["lose", "resolve"]
    assert world.verbs(op_id) == ["submit", "claim", *expected]
    done = world.read(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    assert (done.result_bill_id, done.result_message) == (f"bill-{op_id}", "完成")
    world.oracle.verdict().require_sound()


def test_a_commit_still_on_its_way_is_neither_repeated_nor_called_failed(
    world: World, line: TcpProxy
) -> None:
    op_id = world.stage(note="trip-hold")
    line.arm("trip-hold", Trip.HOLD_COMMIT)
    world.run(op_id)
    assert line.tripped.is_set()
    if world.shared:
        # The row itself is locked by the commit to come: nobody can take its lease.
        with pytest.raises(Transient):
            world.reconciler.resolve(world.read(op_id))
        assert world.code(op_id) is C.RUNNING
    else:
        # Its ledger row is locked: a lookup finds out nothing.
        assert resolved(world, op_id) == ["submit", "claim", "lose"]
        assert world.code(op_id) is C.UNKNOWN
        world.lapse(op_id)
    assert world.run(op_id) == 0
    line.release()
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    world.oracle.verdict().require_sound()


def test_while_the_erp_cannot_be_asked_a_committed_change_is_never_called_failed(
    world: World, line: TcpProxy
) -> None:
    op_id = world.stage(note="trip-down", max_attempts=1)
    line.arm("trip-down", Trip.AFTER_COMMIT_THEN_DOWN)
    world.run(op_id)
    assert line.tripped.is_set()
    if not world.shared:
        for _ in range(3):
            assert resolved(world, op_id) == ["submit", "claim", "lose"]
            assert world.code(op_id) is C.UNKNOWN
    line.restore()
    if not world.shared:
        world.lapse(op_id)
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    world.oracle.verdict().require_sound()


@pytest.mark.parametrize("error", [TimeLimit(), SystemExit(1)], ids=["time-limit", "shutdown"])
def test_a_limit_or_shutdown_that_strikes_during_the_commit_is_resolved_by_the_ledger(
    world: World, line: TcpProxy, error: BaseException
) -> None:
    executor = Executor(
        world.store, world.adapter, world.teller, world.settings, world.reconciler, time_limit=(TimeLimit,)
    )
    op_id, rest = world.stage(note="trip-answer"), world.stage()
    line.arm("trip-answer", Trip.HOLD_ANSWER)

    def let_go() -> None:  # a driver told to stop waits a while for its answer
        line.tripped.wait(30)
        time.sleep(0.5)
        line.release()

    letting_go = Thread(target=let_go)
    letting_go.start()
    with raising_when(line.tripped, error), pytest.raises(type(error)):
        executor.run_batch([op_id, rest])
    letting_go.join()
    done = world.read(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    assert world.read(rest).attempt == 0
    assert [o.status_code for o in world.settle(rest)] == [C.EXECUTED]
    world.oracle.verdict().require_sound()


@pytest.mark.parametrize("trip", [Trip.SWALLOW_COMMIT, Trip.SWALLOW_ANSWER], ids=["commit", "answer"])
def test_a_commit_or_an_answer_that_vanishes_without_a_word_is_never_called_failed(
    world: World, line: TcpProxy, trip: Trip
) -> None:
    executor = Executor(
        world.store, world.adapter, world.teller, world.settings, world.reconciler, time_limit=(TimeLimit,)
    )
    op_id = world.stage(note="trip-swallow")
    line.arm("trip-swallow", trip)
    with raising_when(line.tripped, TimeLimit()), pytest.raises(TimeLimit):  # nothing else ends the waiting
        executor.run_batch([op_id])
    if trip is Trip.SWALLOW_COMMIT:
        # The server's session lives on and holds what it wrote: nobody can prove that it will not commit.
        for _ in range(2):
            world.lapse(*([] if world.shared else [op_id]))
            world.sweeper.sweep()
            assert world.code(op_id) is (C.RUNNING if world.shared else C.UNKNOWN)
    line.release()
    world.lapse(op_id)
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 2 if trip is Trip.SWALLOW_COMMIT else 1)
    world.oracle.verdict().require_sound()


def test_the_queue_lost_between_the_erps_commit_and_the_write_back_is_made_good_by_the_reconciler(
    where: Databases, session_redis: EmbeddedRedis
) -> None:
    if where.shared:
        return  # there is no such moment: it is one commit
    with proxied(where.queue_url) as (line, url):
        world = World(where, session_redis.url, database_url=url)
        direct = World(where, session_redis.url)
        direct.wipe()
        op_id = direct.stage()

        class CutOff(Executor):
            def _end(self, *arguments: object) -> None:
                line.cut()
                super()._end(*arguments)  # type: ignore[arg-type]

        CutOff(world.store, world.adapter, world.teller, world.settings, world.reconciler).run_batch([op_id])
        assert (direct.code(op_id), direct.effects(op_id)) == (C.RUNNING, 1)
        direct.set([op_id], tLeaseUntil=db_now_plus(-1))
        direct.sweeper.sweep()
        assert direct.verbs(op_id) == ["submit", "claim", "lose", "resolve"]
        direct.oracle.verdict().require_sound()
        world.close()
        direct.close()


def test_connections_that_died_while_idle_cost_a_confirm_nothing(world: World) -> None:
    world.stage()  # fills the pool
    with world.store.read() as connection:
        mysql = is_mysql(connection.dialect)
        others = (
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            if mysql
            else "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with create_engine(world.where.queue_url, poolclass=NullPool).connect() as connection:
        pids = list(connection.execute(text(others)).scalars())
        for pid in pids:
            connection.execute(text(f"KILL {pid}" if mysql else f"SELECT pg_terminate_backend({pid})"))
    assert pids
    op_id = world.stage()
    assert world.settle(op_id)[0].status_code is C.EXECUTED
