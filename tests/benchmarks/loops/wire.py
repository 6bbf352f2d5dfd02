"""What a hand-written loop needs of its surroundings."""

from __future__ import annotations

import os
from typing import Any

import redis

from tests.benchmarks.reference.orders import SUBSIDIARY, USER

__all__ = ["SUBSIDIARY", "USER", "WAKE", "database", "open_redis", "worker_number"]

WAKE = "bench:wake"


def database() -> str:
    """psycopg's connection string, or a path or URL for the others."""
    return os.environ["BENCH_DATABASE"]


def open_redis() -> Any:
    return redis.Redis.from_url(os.environ["BENCH_REDIS"])


def worker_number() -> tuple[int, int]:
    """Which of how many processes this is."""
    return int(os.environ.get("BENCH_WORKER", "0")), int(os.environ.get("BENCH_WORKERS", "2"))
