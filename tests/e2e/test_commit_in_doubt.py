"""Celery's limits and cold shutdown strike a real worker inside COMMIT, whose answer does not come. Only the ledger
says what happened, and a committed change is never called failed (RELIABILITY A10, A12, A13, B9)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from staging.contracts.status import StatusCode as C
from tests.support.forked_worker import ForkedWorker
from tests.support.processes import BeatProcess
from tests.support.tcp_proxy import TcpProxy, Trip, proxied
from tests.support.waiting import wait_until
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
LIMITS = {
    "drain_budget_s": "0.2",
    "statement_timeout_s": "2.5",
    "hand_back_after_s": "20",
    "sweep_interval_s": "0.5",
    "max_attempts": "20",
}
MARK = "the commit in doubt"


@dataclass
class Doubt:
    """A worker whose line to the ERP's database goes through ``line``; the world of the test does not."""

    world: World
    line: TcpProxy
    worker: ForkedWorker

    def stage(self, trip: Trip) -> str:
        """An operation whose COMMIT goes wrong by ``trip``; returns once it is under way."""
        self.line.arm(MARK, trip)
        op_id = self.world.stage(note=MARK)
        wait_until(self.line.tripped.is_set, 30, "the worker is inside COMMIT")
        return op_id

    def leased(self, op_id: str) -> bool:
        """Somebody holds it, since its lease was set back."""
        until = self.world.read(op_id).lease_until
        return until is not None and until > datetime.now(UTC)

    def settled(self, op_id: str) -> None:
        """It ends well: one effect, in its first attempt, and at no time had it been called failed."""

        def ended() -> bool:
            self.world.lapse(op_id)
            return self.world.oracle.pending() == 0

        wait_until(ended, 60, "it comes to an end", poll_s=0.5)
        done = self.world.read(op_id)
        assert (done.status_code, done.attempt, self.world.effects(op_id)) == (C.EXECUTED, 1, 1)
        assert [event.code for event in self.world.events(op_id)][:2] == [C.SUBMITTED, C.RUNNING]
        assert self.world.verbs(op_id) == ["submit", "claim", "lose", "resolve"]
        self.world.oracle.verdict().require_sound()


OpenDoubt = Callable[[float, float], Doubt]


@pytest.fixture(params=["postgresql", "mariadb"])
def open_doubt(
    request: pytest.FixtureRequest, open_world: MakeWorld, start_beat: StartBeat, tmp_path: Path
) -> Iterator[OpenDoubt]:
    """``open_doubt(soft_s, hard_s)`` → a Doubt whose worker has these time limits."""
    with ExitStack() as stack:

        def make(soft_s: float, hard_s: float) -> Doubt:
            limits = {"soft_time_limit_s": soft_s, "hard_time_limit_s": hard_s, "lease_s": hard_s + 1}
            world = open_world(request.param, shared=False, **LIMITS, **limits)
            line, url = stack.enter_context(proxied(world.where.erp_url))
            env = {**world.env, "OPSTAGE_ERP_DATABASE_URL": url}
            worker = ForkedWorker(env, tmp_path, concurrency=3).start()
            stack.callback(worker.kill_all)
            start_beat(env)
            return Doubt(world, line, worker)

        yield make


def test_the_soft_limit_inside_commit_is_resolved_by_the_ledger_at_once(open_doubt: OpenDoubt) -> None:
    doubt = open_doubt(4, 9)
    op_id = doubt.stage(Trip.HOLD_ANSWER)
    doubt.worker.wait_for_log("SoftTimeLimitExceeded", 30)
    wait_until(
        lambda: doubt.world.code(op_id) is C.EXECUTED, 30, "the ledger has told, without the lost answer"
    )
    doubt.settled(op_id)
    assert doubt.world.settle(doubt.world.stage())[0].status_code is C.EXECUTED


def test_the_hard_limit_inside_commit_leaves_102_as_long_as_the_database_is_out_of_reach(
    open_doubt: OpenDoubt,
) -> None:
    doubt = open_doubt(3.5, 5)
    op_id = doubt.stage(Trip.FREEZE_AFTER_COMMIT)
    doubt.worker.wait_for_log("Hard time limit", 30)
    for _ in range(2):
        doubt.world.lapse(op_id)
        wait_until(lambda: doubt.leased(op_id), 30, "somebody looks it up again")
        assert doubt.world.code(op_id) is C.UNKNOWN
    doubt.line.restore()
    doubt.settled(op_id)


def test_a_cold_shutdown_inside_commit_neither_undoes_nor_repeats_it(open_doubt: OpenDoubt) -> None:
    doubt = open_doubt(40, 50)
    op_id = doubt.stage(Trip.HOLD_ANSWER)
    doubt.worker.send(signal.SIGQUIT)
    doubt.worker.wait_exit(30)
    doubt.line.release()
    doubt.worker.start()
    doubt.settled(op_id)
