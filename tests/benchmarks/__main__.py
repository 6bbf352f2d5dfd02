"""``python -m tests.benchmarks`` (``make bench ARGS="…"``): measure, print tables, write them to artifacts/benchmarks.

--measure throughput,latency     what to measure (also: confirm, nodes, growth, endurance); default: these two
--only opstage,bare              arms by name or beginning; the reference comes along
--keep                           also write to tests/benchmarks/results, which is committed
"""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks import confirm, endurance, growth, latency, nodes, report, throughput
from tests.benchmarks.arms import REFERENCE, chosen
from tests.benchmarks.servers import bench

_MEASURES = ("throughput", "latency", "confirm", "nodes", "growth", "endurance")


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    wanted = options.measure.split(",")
    settings = dict(pair.split("=", 1) for pair in options.set)
    reference = REFERENCE[options.engine]
    arms = chosen(options.only, options.engine)
    suffix = "" if options.engine == "postgresql" else f"-{options.engine}"
    with bench(options.engine, history_rows=options.history, tenants=options.tenants) as place:
        if "throughput" in wanted:

            def keep(runs: list[throughput.Measured], rows: list[throughput.Summary]) -> None:
                table, chart = report.throughput_table(rows), report.throughput_chart(rows)
                found = {"throughput": rows, "runs": runs, "settings": settings}
                _show(table, report.save(f"throughput{suffix}", found, [table], chart, keep=options.keep))

            throughput.measure(
                place,
                arms,
                reference,
                n=options.n,
                rounds=options.rounds,
                settings=settings,
                after_round=keep,
            )
        if "latency" in wanted:
            idle = [arm for arm in arms if arm.waits]
            waits = latency.measure(
                place, idle, reference, n=options.waits, rounds=options.rounds, settings=settings
            )
            table = report.latency_table(waits)
            found = {"latency": waits, "settings": settings}
            _show(table, report.save(f"latency{suffix}", found, [table], keep=options.keep))
        if "confirm" in wanted:
            confirms = confirm.measure(place, count=options.n, settings=settings)
            table = report.confirm_table(confirms)
            found = {"confirm": confirms, "settings": settings}
            _show(table, report.save(f"confirm{suffix}", found, [table], keep=options.keep))
        if "nodes" in wanted:
            scaled = nodes.measure(place, (1, 2, 3, 4), n=options.n, rounds=options.rounds, settings=settings)
            table = report.nodes_table(scaled)
            found = {"nodes": scaled, "settings": settings}
            _show(table, report.save(f"nodes{suffix}", found, [table], keep=options.keep))
        if "endurance" in wanted:
            tenths = endurance.measure(place, n=options.n, settings=settings)
            table = report.endurance_table(tenths)
            found = {"endurance": tenths, "settings": settings}
            _show(table, report.save(f"endurance{suffix}", found, [table], keep=options.keep))
    if "growth" in wanted:
        grown = growth.measure(_pairs(options.growth), n=options.n, settings=settings)
        table = report.growth_table(grown)
        _show(
            table, report.save("growth", {"growth": grown, "settings": settings}, [table], keep=options.keep)
        )


def _pairs(text: str) -> list[tuple[int, int]]:
    """ "10000:20,1000000:20" as (finished rows, tenants)."""
    pairs = [part.split(":") for part in text.split(",")]
    return [(int(rows), int(tenants)) for rows, tenants in pairs]


def _show(table: str, path: object) -> None:
    print(f"\n{table}\n\n{path}\n")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", default="throughput,latency", help=", ".join(_MEASURES))
    parser.add_argument("--only", default="", help="arms, comma-separated (beginnings will do)")
    parser.add_argument("--n", type=int, default=2000, help="operations in the backlog")
    parser.add_argument("--waits", type=int, default=100, help="operations per round for latency")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", choices=sorted(REFERENCE), default="postgresql")
    parser.add_argument("--history", type=int, default=20_000, help="finished operations before the run")
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--growth", default="10000:20,1000000:20,5000000:20,20000:1,20000:500")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPSTAGE_X=Y", help="for Opstage's arms"
    )
    options = parser.parse_args(arguments)
    unknown = set(options.measure.split(",")) - set(_MEASURES)
    if unknown:
        parser.error(f"no measure {', '.join(sorted(unknown))}; there are {', '.join(_MEASURES)}")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
