"""``python -m tests.benchmarks`` (``make bench ARGS="…"``): measure, print tables, write them to artifacts/."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.arms import REFERENCE, chosen
from tests.benchmarks.servers import bench
from tests.benchmarks.throughput import measure


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", help="arms, comma-separated (beginnings will do)")
    parser.add_argument("--n", type=int, default=2000, help="operations in the backlog")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", choices=sorted(REFERENCE), default="postgresql")
    parser.add_argument("--history", type=int, default=20_000, help="finished operations before the run")
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPSTAGE_X=Y", help="a setting for Opstage's arms"
    )
    options = parser.parse_args(arguments)
    arms = chosen(options.only, options.engine)
    settings = dict(pair.split("=", 1) for pair in options.set)
    with bench(options.engine, history_rows=options.history, tenants=options.tenants) as place:
        _, summaries = measure(
            place, arms, REFERENCE[options.engine], n=options.n, rounds=options.rounds, settings=settings
        )
    for s in summaries:
        print(
            f"{s.label:26} {s.ops_per_s:7.0f} ({s.low:.0f}-{s.high:.0f})  x{s.ratio:.2f}"
            f"  CPU {s.worker_cpu_ms:.2f} + {s.database_cpu_ms:.2f} ms/op"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
