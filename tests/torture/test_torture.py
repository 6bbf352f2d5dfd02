"""A short torture in every test run; and torture itself, which has to notice when a safeguard is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.plan import DATABASE, DOORS, REDIS, WORKERS, kinds_of, make_plan
from tests.torture.proofs import PROOFS
from tests.torture.run import torture
from tests.torture.scene import Options


@pytest.mark.timeout(300)
def test_whatever_is_killed_each_accepted_operation_has_one_effect_or_one_explicit_failure(
    tmp_path: Path,
) -> None:
    report = torture(Options("postgresql", shared=False, seconds=12, seed=7), tmp_path)
    assert not report.problems, "\n".join(report.problems[:20])
    assert report.codes[200] > 10, "nothing much happened"
    assert len(report.faults) >= 3
    assert sum(report.failpoints.values()) > 0


@pytest.mark.parametrize("safeguard", PROOFS)
@pytest.mark.timeout(300)
def test_torture_notices_a_missing_safeguard_within_a_minute(tmp_path: Path, safeguard: str) -> None:
    proof = PROOFS[safeguard]
    report = torture(proof.options, tmp_path, until_broken=True)
    assert any(problem.endswith(proof.seen) for problem in report.problems), report


def test_the_same_seed_makes_the_same_plan_and_a_long_one_has_every_fault_there_is() -> None:
    for kind in DATABASE:
        plan = make_plan(5, 600, kinds_of(kind))
        assert plan == make_plan(5, 600, kinds_of(kind))
        assert plan != make_plan(6, 600, kinds_of(kind))
        assert {fault.kind for fault in plan} == {*WORKERS, *DOORS, *REDIS, *DATABASE[kind]}
