"""``opstage up`` and ``opstage demo`` as a user runs them: everything starts, and nothing is left behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import redis

from staging.embedded.runtime import running_env
from tests.support.private import open_folder
from tests.support.processes import ROOT, LoggedProcess, clean_environment, gone
from tests.support.waiting import wait_until

_OPSTAGE = (sys.executable, "-m", "staging.cli.main")


class Up(LoggedProcess):
    """``opstage up`` on a data directory of its own, with all of its parts ready."""

    ready_text = " ready."
    ready_timeout_s = 60.0

    def __init__(self, folder: Path) -> None:
        super().__init__(
            [*_OPSTAGE, "up"], {"OPSTAGE_DATA_DIR": str(folder), "OPSTAGE_LOCALE": "en"}, folder, "up"
        )
        self.family: list[int] = []

    def ready(self) -> Up:
        """Start it and note all of its processes."""
        already = len(self.log())
        self.start()
        self.wait_for_log("beat: Starting...", 30, after=already)
        self.wait_for_log("Visit me at", 30, after=already)
        self.family = [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        return self


@pytest.fixture
def up() -> Iterator[Up]:
    with open_folder() as folder:
        one = Up(folder)
        yield one
        one.kill_all()
        wait_until(lambda: all(gone(pid) for pid in one.family), 20, "nothing of opstage up is left")


def names(pids: list[int]) -> str:
    return "\n".join(" ".join(psutil.Process(pid).cmdline()) for pid in pids)


def test_up_runs_the_whole_set_and_ctrl_c_leaves_nothing_behind(up: Up) -> None:
    up.ready()
    running = names(up.family)
    for part in (
        "-server 127.0.0.1:",
        "celery -A workers.app:app worker",
        "celery -A workers.app:app beat",
        "flower",
    ):
        assert part in running
    address, user, password = re.findall(r"Flower +(\S+) +user (\S+) +password (\S+)", up.log())[0]
    assert httpx.get(address + "/metrics", timeout=10).status_code == 401
    assert httpx.get(address + "/metrics", auth=(user, password), timeout=10).status_code == 200
    up.send(signal.SIGINT)
    assert up.wait_exit(40) == 0
    assert all(gone(pid) for pid in up.family)


def test_another_command_uses_the_servers_of_the_running_set(up: Up) -> None:
    up.ready()
    env = running_env(up.folder)
    client = redis.Redis.from_url(env["OPSTAGE_REDIS_URL"])
    assert client.ping()
    client.close()
    shown = subprocess.run(
        [*_OPSTAGE, "env"], env=up.env, cwd=up.folder, capture_output=True, text=True, timeout=30
    )
    shell = ["sh", "-c", f'{shown.stdout}\nprintf %s "$OPSTAGE_REDIS_URL"']
    assert subprocess.run(shell, capture_output=True, text=True).stdout == env["OPSTAGE_REDIS_URL"]
    second = LoggedProcess(
        [*_OPSTAGE, "worker", "--name", "second"], {"OPSTAGE_DATA_DIR": str(up.folder)}, up.folder, "second"
    )
    second.ready_text = " ready."
    second.start()
    port = env["OPSTAGE_REDIS_URL"].rpartition(":")[2]
    assert f"127.0.0.1:{port}" in second.log()
    second.stop()


def test_a_killed_up_leaves_nothing_and_starts_again_on_the_same_data(up: Up) -> None:
    up.ready()
    first = up.family
    assert len(first) >= 4
    up.kill9()
    wait_until(lambda: all(gone(pid) for pid in first), 20, "every process of the killed set is gone")
    up.ready()
    up.send(signal.SIGTERM)
    assert up.wait_exit(40) == 0
    assert all(gone(pid) for pid in up.family)


def test_a_second_set_on_the_same_data_is_refused_with_the_reason(up: Up) -> None:
    up.ready()
    second = subprocess.run(up.command, env=up.env, cwd=up.folder, capture_output=True, text=True, timeout=60)
    assert second.returncode == 3
    assert "OPSTAGE_DATA_DIR" in second.stderr
    assert up.alive()


def test_the_commands_exit_codes() -> None:
    def code(*arguments: str, **env: str) -> int:
        command = [*_OPSTAGE, *arguments]
        return subprocess.run(
            command, env=clean_environment(env), cwd=ROOT, capture_output=True, timeout=60
        ).returncode

    assert code("--version") == 0
    assert code("--help") == 0
    assert code("no-such-command") == 2
    assert code("worker", "--concurrency", "0") == 2
    assert code("beat", OPSTAGE_LEASE_S="1") == 2
    assert code("env", OPSTAGE_DATA_DIR="/nonexistent") == 3
