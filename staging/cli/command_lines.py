"""How each long-running process of Opstage is started, by dotted name: this side never imports the workers."""

from __future__ import annotations

import sys
from pathlib import Path

from staging.settings import Settings

CELERY_APP = "workers.app:app"
_CELERY = (sys.executable, "-m", "celery", "-A", CELERY_APP)


def worker_command(settings: Settings, *, concurrency: int | None = None, name: str = "opstage") -> list[str]:
    """A Celery worker on both queues; ``name`` unique among the workers of this host."""
    return [
        *(*_CELERY, "worker", "--queues", f"{settings.queue_name},{settings.sweep_queue_name}"),
        *("--concurrency", str(concurrency or settings.worker_concurrency), "--hostname", f"{name}@%h"),
        # no worker needs to know another: rows, leases and the sweeper are how they meet
        *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
    ]


def api_command() -> list[str]:
    """The HTTP door, with host and port from the settings."""
    return [sys.executable, "-m", "staging.api.serve"]


def beat_command(schedule: Path) -> list[str]:
    """The clock of the sweeper; any number may run. ``schedule``: the file where it keeps its last runs.

    No pid file: what is left of a killed beat must not keep the next one from starting.
    """
    return [*_CELERY, "beat", "--schedule", str(schedule), "--pidfile", "", "--loglevel", "INFO"]


def flower_command(settings: Settings) -> list[str]:
    """Flower on loopback; user and password come from the environment (FLOWER_BASIC_AUTH), never on this line."""
    conf = Path(__file__).with_name("flower_conf.py")
    return [*_CELERY, "flower", f"--conf={conf}", "--address=127.0.0.1", f"--port={settings.flower_port}"]
