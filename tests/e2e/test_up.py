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
from tests.support.cli import opstage
from tests.support.private import open_folder
from tests.support.processes import LoggedProcess, gone
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
    shown = opstage(up.folder, {"OPSTAGE_DATA_DIR": str(up.folder)}, "env")
    shell = ["sh", "-c", f'{shown.out}\nprintf %s "$OPSTAGE_REDIS_URL"']
    assert subprocess.run(shell, capture_output=True, text=True).stdout == env["OPSTAGE_REDIS_URL"]
    second = LoggedProcess(
        [*_OPSTAGE, "worker", "--name", "second"], {"OPSTAGE_DATA_DIR": str(up.folder)}, up.folder, "second"
    )
    second.ready_text = " ready."
    second.start()
    port = env["OPSTAGE_REDIS_URL"].rpartition(":")[2]
    second.wait_for_log(f"127.0.0.1:{port}", 10)
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
    second = opstage(up.folder, {"OPSTAGE_DATA_DIR": str(up.folder)}, "up")
    assert second.code == 3
    assert "OPSTAGE_DATA_DIR" in second.err
    assert up.alive()


@pytest.mark.parametrize(
    ("arguments", "env", "code"),
    [
        (["--version"], {}, 0),
        (["--help"], {}, 0),
        (["no-such-command"], {}, 2),
        (["worker", "--concurrency", "0"], {}, 2),
        (["beat"], {"OPSTAGE_LEASE_S": "1"}, 2),
        (["env"], {"OPSTAGE_DATA_DIR": "/nonexistent"}, 3),
    ],
)
def test_the_commands_exit_codes(
    arguments: list[str], env: dict[str, str], code: int, tmp_path: Path
) -> None:
    assert opstage(tmp_path, env, *arguments).code == code
