"""Several worker hosts on one machine: a UTS namespace gives a process, and its children, a host name of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tests.support.processes import WorkerProcess
from tests.support.services import missing


@lru_cache(maxsize=1)
def require_hosts() -> None:
    """Skip (or fail, where services are required) where no namespace may be made."""
    if shutil.which("unshare") is None or subprocess.run(on_host("there", ["true"])).returncode:
        missing("no UTS namespace can be made", "apt-get install util-linux, and run as root")


def on_host(name: str, command: Sequence[str]) -> list[str]:
    """``command`` as it would run on a host called ``name``; the process keeps its pid."""
    allowed = [] if os.geteuid() == 0 else ["--map-root-user"]
    return [
        shutil.which("unshare") or "unshare",
        *allowed,
        "--uts",
        "sh",
        "-c",
        'hostname "$0" && exec "$@"',
        name,
        *command,
    ]


class HostWorker(WorkerProcess):
    """``opstage worker`` on a host of its own."""

    def __init__(self, env: Mapping[str, str], folder: Path, host: str, *, concurrency: int = 1) -> None:
        super().__init__(env, folder, name=f"worker-{host}", concurrency=concurrency)
        self.host = host
        self.command = on_host(host, self.command)
