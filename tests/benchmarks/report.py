"""Results as a table to read, JSON to compute with, and a chart; with the machine and versions they belong to."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.benchmarks.chart import Bar, bars
from tests.benchmarks.confirm import Confirms
from tests.benchmarks.endurance import Tenth
from tests.benchmarks.growth import Grown
from tests.benchmarks.latency import Latency
from tests.benchmarks.nodes import Scaled
from tests.benchmarks.throughput import Summary
from tests.support.private import private_postgres_bin
from tests.support.processes import ROOT

ARTIFACTS = ROOT / "artifacts" / "benchmarks"
KEPT = Path(__file__).with_name("results")
_OURS = ("celery", "kombu", "redis", "sqlalchemy", "psycopg", "pymysql")
_PEERS = ("procrastinate", "pgqueuer", "asyncpg", "dramatiq", "dbos")


def throughput_table(rows: Sequence[Summary]) -> str:
    head = "| what | commit per | op/s (min–max) | × by hand | CPU ms/op, worker + database |\n|---|---|---|---|---|"
    return "\n".join(
        [
            head,
            *(
                f"| {r.label} | {r.commit} | {r.ops_per_s:.0f} ({r.low:.0f}–{r.high:.0f}) | {r.ratio:.2f}"
                f" | {r.worker_cpu_ms:.2f} + {r.database_cpu_ms:.2f} |"
                for r in rows
            ),
        ]
    )


def latency_table(rows: Sequence[Latency]) -> str:
    head = "| what | p50 ms | p99 ms | p50 × by hand | n |\n|---|---|---|---|---|"
    lines = (f"| {r.label} | {r.p50:.1f} | {r.p99:.1f} | {r.ratio:.2f} | {r.n} |" for r in rows)
    return "\n".join([head, *lines])


def confirm_table(rows: Sequence[Confirms]) -> str:
    head = "| confirms a second, one API process | at half of it: p50 ms | p99 ms | connections |\n|---|---|---|---|"
    lines = (f"| {r.per_s:.0f} | {r.p50:.1f} | {r.p99:.1f} | {r.clients} |" for r in rows)
    return "\n".join([head, *lines])


def growth_table(rows: Sequence[Grown]) -> str:
    head = "| finished rows | tenants | due ms | claim 10 ms | CPU ms/op | × by hand |\n|---|---|---|---|---|---|"
    lines = (
        f"| {r.finished:,} | {r.tenants} | {r.due_ms:.2f} | {r.claim_ms:.2f}"
        f" | {r.worker_cpu_ms:.2f} + {r.database_cpu_ms:.2f} | {r.ratio:.2f} |"
        for r in rows
    )
    return "\n".join([head, *lines])


def endurance_table(rows: Sequence[Tenth]) -> str:
    head = "| operations done | op/s | worker memory MB | finding due rows ms |\n|---|---|---|---|"
    lines = (f"| {r.done:,} | {r.ops_per_s:.0f} | {r.memory_mb:.0f} | {r.due_ms:.2f} |" for r in rows)
    return "\n".join([head, *lines])


def nodes_table(rows: Sequence[Scaled]) -> str:
    head = "| hosts, a worker process each | op/s | × one host | CPU ms/op, worker + database |\n|---|---|---|---|"
    lines = (
        f"| {r.hosts} | {r.ops_per_s:.0f} | {r.ratio:.2f} | {r.worker_cpu_ms:.2f} + {r.database_cpu_ms:.2f} |"
        for r in rows
    )
    return "\n".join([head, *lines])


def save(
    name: str, found: Mapping[str, Any], tables: Sequence[str], chart: str = "", *, keep: bool = False
) -> Path:
    """Write ``name``.json, .md and .svg to artifacts/benchmarks, with ``keep`` also to what is committed."""
    about = machine()
    text = "\n\n".join([*tables, _about_text(about)]) + "\n"
    for folder in (ARTIFACTS, *((KEPT,) if keep else ())):
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps({**about, **found}, indent=1, ensure_ascii=False, default=_plain)
        (folder / f"{name}.json").write_text(content + "\n", encoding="utf-8")
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        if chart:
            (folder / f"{name}.svg").write_text(chart, encoding="utf-8")
    return ARTIFACTS / f"{name}.md"


def throughput_chart(rows: Sequence[Summary]) -> str:
    about = machine()
    drawn = [Bar(f"{r.label} (commit: {r.commit})", r.ratio, _colour(r)) for r in rows]
    return bars(
        "One ERP write through each: operations a second, by hand with a commit each = 1",
        sorted(drawn, key=lambda bar: -bar.value),
        f"{about['cores']} cores, median of {rows[0].rounds} interleaved rounds of {rows[0].n}, {about['date'][:10]}",
    )


def _colour(row: Summary) -> str:
    if row.arm.startswith("opstage"):
        return "ours"
    return "hand" if row.arm in ("bare", "group") else "peer"


def machine() -> dict[str, Any]:
    """Where and on what this was measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _said("git", "rev-parse", "--short", "HEAD"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "databases": {
            "postgresql": _version(str(private_postgres_bin() / "postgres"), "--version"),
            "mariadb": _version("mariadbd", "--version"),
            "sqlite": sqlite3.sqlite_version,
        },
        "versions": {name: metadata.version(name) for name in _OURS} | _peer_versions(),
        "load": os.getloadavg(),
    }


def _about_text(about: Mapping[str, Any]) -> str:
    servers, versions = (
        ", ".join(f"{name} {version}" for name, version in about[kind].items())
        for kind in ("databases", "versions")
    )
    return (
        f"{about['date']}, commit {about['commit']}, {about['cores']} cores ({about['cpu']}), {about['system']},"
        f" Python {about['python']}, {servers}; {versions}. Load average at the end"
        f" {about['load'][0]:.1f}: others used this machine, so read the ratios."
    )


def _peer_versions() -> dict[str, str]:
    found = {}
    for line in (ROOT / "locks" / "bench.txt").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition("==")
        if name in _PEERS:
            found[name] = rest.split()[0]
    return found


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(*command: str) -> str:
    found = re.search(r"\d+\.[\d.]+", _said(*command))
    return found.group() if found else ""


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10).stdout.strip()
    except FileNotFoundError:
        return ""


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(type(value).__name__)
