"""``make torture``: run, print a summary, leave it as JSON in artifacts/, exit 0 (clean) or 1."""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import sys
from collections.abc import Mapping

import pytest

from staging.contracts.status import StatusCode
from tests.support.processes import ROOT
from tests.torture.plan import kinds_of
from tests.torture.proofs import PROOFS
from tests.torture.run import Report, torture
from tests.torture.scene import Options

_ARTIFACTS = ROOT / "artifacts"


def main() -> int:
    options = _options()
    name = f"torture-{options.kind}-{'shared' if options.shared else 'separate'}-{options.seed}"
    logs = _ARTIFACTS / name
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    logging.basicConfig(
        filename=logs / "clients.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    print(f"torture: {options.kind}, {'one database' if options.shared else 'two databases'}, "
          f"{options.seconds:g} s, SEED={options.seed}", flush=True)  # fmt: skip
    try:
        report = torture(
            options, logs, lambda line: print(line, flush=True), until_broken=bool(options.plant)
        )
    except (pytest.skip.Exception, pytest.fail.Exception) as missing:
        print(missing)
        return 3
    print(summary(report))
    (_ARTIFACTS / f"{name}.json").write_text(json.dumps(report.to_json(), indent=2), encoding="utf-8")
    if not report.problems:
        shutil.rmtree(logs)
        return 0
    print(f"logs of all processes: {logs}")
    return 1


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="", help="of a run to be repeated; empty: a new one")
    parser.add_argument("--db", choices=("postgresql", "mariadb", "sqlite"), default="postgresql")
    parser.add_argument("--shared", choices=("0", "1"), default="1", help="1: queue and ERP in one database")
    parser.add_argument("--settings", default="", help="OPSTAGE_NAME=value, several with blanks between")
    parser.add_argument(
        "--plant",
        choices=("", "ledger", "fencing", "order"),
        default="",
        help="take a safeguard out, see proofs.py",
    )
    parser.add_argument("--pace", type=float, default=1.0, help="0.1: quick operations, which share commits")
    parser.add_argument("--kinds", default="", help="of faults, with commas; empty: all")
    parser.add_argument(
        "--failpoints", default="", help="of every worker, like W4:stop;W6:kill; empty: drawn"
    )
    given = parser.parse_args()
    if given.plant:
        return PROOFS[given.plant].options
    kinds = tuple(kind for kind in given.kinds.split(",") if kind)
    if unknown := set(kinds) - set(kinds_of(given.db)):
        parser.error(f"{', '.join(sorted(unknown))}: faults are {', '.join(kinds_of(given.db))}")
    settings = dict(part.split("=", 1) for part in given.settings.split())
    if odd := [name for name in settings if not name.startswith("OPSTAGE_")]:
        parser.error(f"{', '.join(odd)}: settings are named OPSTAGE_…")
    seed = int(given.seed) if given.seed else random.SystemRandom().randrange(1_000_000)
    return Options(
        given.db,
        given.shared == "1",
        given.seconds,
        seed,
        settings,
        kinds=kinds,
        pace=given.pace,
        windows=given.failpoints,
    )


def summary(report: Report) -> str:
    """For reading: what was done, what came of it."""
    clocks = " ".join(report.clocks).strip() or "as they are"
    lines = [
        f"ran                   {report.ran_s} s",
        f"operations accepted   {report.operations}, effects {report.effects}, ended together {report.shared_commits}",
        f"clients               {_listed(report.clients)}",
        f"faults                {sum(report.faults.values())}: {_listed(report.faults)}",
        f"came too late         {_listed(report.skipped) or 'none'}",
        f"failpoints            {sum(report.failpoints.values())}: {_listed(report.failpoints)}",
        f"restarts              {report.restarts} of processes; worker clocks {clocks}",
        f"published, heard      {report.published}",
        f"came to rest          {report.rest_s} s after the last fault",
        "outcomes",
        *(f"  {code}  {count:6}  {_meaning(code)}" for code, count in report.codes.items()),
        f"moves                 {_listed(report.moves)}",
        f"failed, may be retried {_listed(report.reasons)}",
        *(f"  !  {problem}" for problem in report.problems[:30]),
        f"verdict               {f'{len(report.problems)} BROKEN PROMISES' if report.problems else 'clean'}",
    ]
    return "\n".join(lines)


def _meaning(code: int) -> str:
    known = StatusCode.of(code)
    return known.en if known else "?"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


if __name__ == "__main__":
    sys.exit(main())
