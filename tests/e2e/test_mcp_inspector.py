"""The MCP inspector's command line, another implementation of the protocol, against the server over both transports.

Its SDK checks every structured answer against the tool's output schema and fails where one does not fit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import AGENT, Door, open_door
from tests.support.demo_requests import word
from tests.support.mcp import MCP_COMMAND, McpProcess
from tests.support.private import EmbeddedRedis
from tests.support.processes import clean_environment
from tests.support.services import missing

INSPECTOR = "@modelcontextprotocol/inspector@1.0.3"  # runs on Node.js 20 and later


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The program, installed for this run and gone with it: it is large."""
    if not (npm := shutil.which("npm")) or not shutil.which("node"):
        missing("node and npm are not installed", "install them, e.g. apt-get install nodejs npm")
    folder = tmp_path_factory.mktemp("inspector")
    quietly = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
    done = subprocess.run(
        [npm, "install", *quietly, "--prefix", folder, INSPECTOR], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        missing("the MCP inspector cannot be installed", "give npm its registry", done.stderr[-300:])
    yield folder / "node_modules" / ".bin" / "mcp-inspector"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis) -> Iterator[Door]:
    with open_door("sqlite", session_redis.url, tmp_path_factory.mktemp("door")) as made:
        yield made


@pytest.fixture(scope="module")
def server(door: Door) -> Iterator[McpProcess]:
    with McpProcess(door.url, door.folder) as process:
        yield process


class Inspector:
    """The inspector on one transport, as an agent of ``user``."""

    def __init__(self, program: Path, door: Door, user: str, server: McpProcess | None) -> None:
        token = door.token(user, AGENT)
        self._env = clean_environment({"OPSTAGE_API_URL": door.url, "OPSTAGE_TOKEN": token})
        target = (
            [*MCP_COMMAND] if server is None else [server.url, "--header", f"Authorization: Bearer {token}"]
        )
        self._command = ["node", str(program), "--cli", *target]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=120)

    def ask(self, *arguments: str) -> Any:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def call(self, tool: str, **arguments: Any) -> Any:
        given = [f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in arguments.items()]
        pairs = ["--tool-arg", *given] if given else []
        return self.ask("--method", "tools/call", "--tool-name", tool, *pairs)


@pytest.fixture(params=["stdio", "http"])
def lin(request: pytest.FixtureRequest, inspector: Path, door: Door) -> Inspector:
    server = request.getfixturevalue("server") if request.param == "http" else None
    return Inspector(inspector, door, "u-lin", server)


def test_it_lists_typed_tools_and_none_that_confirms(lin: Inspector) -> None:
    tools = {tool["name"]: tool for tool in lin.ask("--method", "tools/list")["tools"]}
    assert {"find_forms", "preview_change", "prepare_erp_sales_order_create"} <= set(tools)
    assert "confirm_operation" not in tools
    assert all(tool["outputSchema"]["type"] == "object" for tool in tools.values())
    assert tools["preview_change"]["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    }


def test_it_queries_and_prepares_and_follows(lin: Inspector, door: Door) -> None:
    page = lin.call("query_records", formId="customer", page={"size": 2})["structuredContent"]
    assert (len(page["items"]), page["page"]["hasMore"]) == (2, True)
    payload = {"name": word(), "type": "direct", "creditLimit": "0.10"}
    answer = lin.call("preview_change", formId="customer", opType="create", payload=payload)[
        "structuredContent"
    ]
    assert answer["state"] == "PREPARED"
    confirmed = door.as_("u-lin").post(f"/v1/preparations/{answer['preparationId']}/confirm", {}, expect=202)
    operation = confirmed["operations"][0]["id"]
    door.execute(operation)
    done = lin.call("operation_status", operationId=operation)["structuredContent"]["operation"]
    assert (done["status"], done["code"]) == ("success", 200)


def test_a_refusal_reaches_it_as_the_contracts_error_object(lin: Inspector) -> None:
    refused = lin.call("lookup_record", formId="customer", record="never-was")
    assert refused["isError"] is True
    assert json.loads(refused["content"][0]["text"])["error"]["code"] == "record_not_found"


def test_without_a_token_it_gets_nothing_over_http(inspector: Path, server: McpProcess) -> None:
    command = ["node", str(inspector), "--cli", server.url, "--method", "tools/list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "find_forms" not in done.stdout
