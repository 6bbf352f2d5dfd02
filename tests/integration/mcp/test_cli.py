"""``opstage mcp`` as an administrator starts it: what it needs, says it needs, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from staging.embedded.spawn import free_port
from tests.support.cli import opstage_here
from tests.support.mcp import MCP_COMMAND, McpProcess
from tests.support.processes import clean_environment


def test_without_a_token_stdio_is_refused_with_what_to_set(tmp_path: Path) -> None:
    ran = opstage_here(tmp_path, {}, "mcp")
    assert ran.code == 1
    assert "OPSTAGE_TOKEN" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "mcp.example.com"])  # noqa: S104 - refused
def test_an_address_open_to_a_network_must_be_known_by_name(tmp_path: Path, host: str) -> None:
    ran = opstage_here(tmp_path, {}, "mcp", "--http", "--host", host)
    assert ran.code == 2
    assert "--allowed-host" in ran.out


def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = opstage_here(tmp_path, {}, "mcp", "--http", "--port", str(taken.getsockname()[1]))
    assert ran.code == 3
    assert "--port" in ran.err


def test_http_listens_on_loopback_alone_and_stops_on_a_signal(tmp_path: Path) -> None:
    process = McpProcess(f"http://127.0.0.1:{free_port()}", tmp_path).start()
    with socket.create_connection(("127.0.0.1", process.port), timeout=5):
        pass
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with pytest.raises(OSError), socket.create_connection((own, process.port), timeout=2):
            pass
    process.send(signal.SIGTERM)
    assert process.wait_exit(20) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def test_stdio_says_nothing_but_the_protocol_and_ends_with_its_host(tmp_path: Path) -> None:
    env = clean_environment({"OPSTAGE_TOKEN": "ops_x", "OPSTAGE_API_URL": f"http://127.0.0.1:{free_port()}"})
    ended = subprocess.run(
        MCP_COMMAND, env=env, cwd=tmp_path, input="not json\n", capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0
    assert all(line.startswith('{"jsonrpc"') for line in ended.stdout.splitlines())
