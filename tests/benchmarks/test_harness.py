"""The benchmark measures what it says: real processes, exact outcomes, and no number for a run that went wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from tests.benchmarks.arms import ARMS, chosen
from tests.benchmarks.arms.base import Run
from tests.benchmarks.arms.by_hand import ByHand
from tests.benchmarks.reference.orders import PAYLOAD_BYTES, Order, orders
from tests.benchmarks.servers import Bench, bench
from tests.benchmarks.throughput import WrongOutcome, measure, one


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    with bench("postgresql", history_rows=200, tenants=4) as made:
        yield made


def _quiet(_line: str) -> None:
    pass


def test_payloads_have_the_size_the_table_states() -> None:
    assert {len(order.payload) for order in orders(120)} == {PAYLOAD_BYTES}


def test_opstage_and_the_loop_by_hand_are_measured_on_the_same_work(place: Bench) -> None:
    arms = chosen("opstage-form", "postgresql")
    assert [arm.name for arm in arms] == ["bare", "opstage-form"]
    runs, summaries = measure(place, arms, "bare", n=20, rounds=1, say=_quiet)
    assert [m.arm for m in runs] == ["bare", "opstage-form"]
    assert all(m.ops_per_s > 0 for m in runs)
    assert summaries[0].ratio == 1.0
    assert summaries[1].ratio == pytest.approx(runs[1].ops_per_s / runs[0].ops_per_s)
    assert summaries[1].worker_cpu_ms > 0


def test_the_set_based_handler_leaves_what_the_others_leave(place: Bench) -> None:
    arm = chosen("opstage-set", "postgresql")[1]
    assert one(place, arm, 40, 0, None, _quiet).ops_per_s > 0


class _Doubling(ByHand):
    """A planted bug: one order is written although nobody asked for it."""

    def prepare(self, run: Run) -> None:
        with run.connect() as connection:
            connection.execute(
                text(
                    "INSERT INTO po_master (id, brands, subsidiary, bill_no, supplier, total, maker)"
                    " VALUES ('twice', 'B0000', 'S01', 'PO-twice', 's', 158.25, 'u-lin')"
                )
            )
            connection.commit()


class _Losing(ByHand):
    """A planted bug: one operation never reaches the queue."""

    def fill(self, run: Run, orders: list[Order]) -> None:  # type: ignore[override]
        super().fill(run, orders[:-1])


@pytest.mark.parametrize(
    ("planted", "complaint"), [(_Doubling, "21 orders for 20 operations"), (_Losing, "ledger: 1 missing")]
)
def test_a_run_with_a_wrong_outcome_is_an_error_and_no_number(
    place: Bench, planted: type[ByHand], complaint: str
) -> None:
    arm = planted("bare", "by hand", "tests.benchmarks.loops.bare")
    with pytest.raises(WrongOutcome, match=complaint):
        one(place, arm, 20, 0, None, _quiet, stalled_s=2.0)


def test_an_arm_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no arm 'bear'"):
        chosen("bear", "postgresql")
    assert set(ARMS) >= {"bare", "opstage-form"}
