"""No server outlives the process that started it, however that process ends; no two servers share data."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from staging.embedded.errors import EmbeddedServerError
from staging.embedded.postgres_server import EmbeddedPostgres
from staging.embedded.redis_server import EmbeddedRedis
from staging.embedded.spawn import Account, guarded, require_reachable, stop_group
from tests.support.private import open_folder
from tests.support.processes import ROOT, clean_environment, gone
from tests.support.waiting import wait_until

_SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
_PARENT = """
import sys, time, signal
from staging.embedded.spawn import guarded
child = guarded({command!r}, death_signal=signal.SIGKILL, mode={mode!r})
print(child.pid, flush=True)
time.sleep(600)
"""
_SERVER_PARENT = """
import sys, time
from pathlib import Path
from staging.embedded.{module} import {server}
print({server}(Path(sys.argv[1])).start().pid, flush=True)
time.sleep(600)
"""


def start_parent(script: str, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Run ``script`` in a process of its own; return it and the pid it prints first."""
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment({}),
        cwd=ROOT,
    )
    assert parent.stdout is not None
    line = parent.stdout.readline()
    parent.stdout.close()
    return parent, int(line)


@pytest.mark.parametrize("mode", ["kernel", "watch"])
def test_a_guarded_process_dies_with_a_parent_that_was_killed(mode: str) -> None:
    if mode == "kernel" and not sys.platform.startswith("linux"):
        pytest.skip("the kernel's death signal exists on Linux only; the watch mode is tested here")
    parent, guard_pid = start_parent(_PARENT.format(command=_SLEEP, mode=mode))
    family = [guard_pid]
    if mode == "watch":
        wait_until(lambda: psutil.Process(guard_pid).children(), 10, "the guard starts its command")
        family += [child.pid for child in psutil.Process(guard_pid).children()]
    assert not any(gone(pid) for pid in family)
    parent.kill()
    parent.wait()
    wait_until(lambda: all(gone(pid) for pid in family), 5, "everything the parent started is gone")


@pytest.mark.parametrize("mode", ["kernel", "watch"])
def test_a_guarded_process_gets_the_signals_its_parent_sends(mode: str) -> None:
    if mode == "kernel" and not sys.platform.startswith("linux"):
        pytest.skip("the kernel's death signal exists on Linux only; the watch mode is tested here")
    process = guarded(
        [sys.executable, "-uc", "import signal; print('up'); signal.pause()"],
        death_signal=signal.SIGKILL,
        mode=mode,
        output=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    code = stop_group(process, signal.SIGTERM, 5)
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()
    assert code in (-signal.SIGTERM, 128 + signal.SIGTERM)


@pytest.mark.parametrize(
    ("module", "server"), [("redis_server", "EmbeddedRedis"), ("postgres_server", "EmbeddedPostgres")]
)
def test_an_embedded_server_dies_with_its_parent_and_its_data_can_be_opened_again(
    module: str, server: str
) -> None:
    with open_folder() as folder:
        parent, pid = start_parent(_SERVER_PARENT.format(module=module, server=server), str(folder / "data"))
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        parent.kill()
        parent.wait()
        wait_until(lambda: all(gone(member) for member in family), 15, "the server is gone")
        again = {"redis_server": EmbeddedRedis, "postgres_server": EmbeddedPostgres}[module](folder / "data")
        with again:
            assert not gone(again.pid)


def test_two_servers_never_share_a_data_directory() -> None:
    with open_folder() as folder, EmbeddedRedis(folder / "redis"):
        with pytest.raises(EmbeddedServerError) as caught:
            EmbeddedRedis(folder / "redis").start()
        assert str(folder / "redis") in caught.value.message("zh")


def test_the_password_is_in_no_argument_and_in_no_file_others_may_read() -> None:
    with open_folder() as folder, EmbeddedRedis(folder / "redis") as server:
        password = server.url.split(":")[2].split("@")[0]
        assert password not in " ".join(psutil.Process(server.pid).cmdline())
        holders = [
            path
            for path in (folder / "redis").iterdir()
            if path.is_file() and password in path.read_text("latin1")
        ]
        assert [path.name for path in holders] == ["redis.conf"]
        assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600


def test_redis_runs_with_the_settings_the_queue_relies_on() -> None:
    with open_folder() as folder, EmbeddedRedis(folder / "redis") as server:
        client = server.client()
        wanted = {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "bind": "127.0.0.1",
        }
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
        client.close()


def test_a_server_that_cannot_start_shows_the_end_of_its_log() -> None:
    with open_folder() as folder, pytest.raises(EmbeddedServerError, match="no-such-option"):
        EmbeddedRedis(folder / "redis", options={"no-such-option": "1"}).start()


def test_a_folder_the_servers_user_cannot_enter_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    somebody_else = Account(os.getuid() + 12345, os.getgid() + 12345, "somebody")
    with pytest.raises(EmbeddedServerError) as caught:
        require_reachable(closed / "data", somebody_else)
    assert "OPSTAGE_DATA_DIR" in caught.value.message("en")
