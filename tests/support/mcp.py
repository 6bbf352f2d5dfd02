"""The MCP server as hosts start it, and the official SDK's client to talk to it, over both transports."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, types
from mcp.client.session import ClientRequestContext, ElicitationFnT
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from staging.embedded.spawn import free_port
from tests.support.processes import ROOT, LoggedProcess

MCP_COMMAND = (sys.executable, "-m", "staging.cli.main", "mcp")
LEGACY, MODERN = "legacy", "2026-07-28"


class McpProcess(LoggedProcess):
    """``opstage mcp --http`` on a port of its own."""

    ready_text = "MCP  http"
    ready_timeout_s = 60.0

    def __init__(self, api_url: str, folder: Path, *arguments: str, name: str = "mcp") -> None:
        self.port = free_port()
        command = [*MCP_COMMAND, "--http", "--port", str(self.port), *arguments]
        super().__init__(command, {"OPSTAGE_API_URL": api_url}, folder, name)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@dataclass
class Person:
    """Who sits before the client: answers every question with ``reply``, and remembers what was shown."""

    reply: types.ElicitResult = field(
        default_factory=lambda: types.ElicitResult(action="accept", content={"confirm": True})
    )
    shown: list[str] = field(default_factory=list)

    async def __call__(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.shown.append(params.message)
        return self.reply


@dataclass
class Agent:
    """A connected client. Answers are checked against the tool's output schema by the SDK itself."""

    client: Client

    async def tools(self) -> dict[str, types.Tool]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer, which the text repeats."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        answer: dict[str, Any] = result.structured_content
        assert json.loads(text_of(result)) == answer
        return answer

    async def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The contract's error object of a call that must fail."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        body = json.loads(text_of(result))
        assert set(body) <= {"error", "notes"}
        error: dict[str, Any] = body["error"]
        assert error["message"]
        assert error["hint"]
        return error


def text_of(result: types.CallToolResult) -> str:
    """The one text of a result."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def stdio_parameters(env: Mapping[str, str], folder: Path) -> StdioServerParameters:
    """``opstage mcp`` with just these OPSTAGE_* variables."""
    return StdioServerParameters(
        command=MCP_COMMAND[0], args=list(MCP_COMMAND[1:]), env={**env, "PYTHONPATH": str(ROOT)}, cwd=folder
    )


@asynccontextmanager
async def over_stdio(
    api_url: str,
    folder: Path,
    token: str,
    *,
    person_token: str = "",
    person: ElicitationFnT | None = None,
    mode: str = LEGACY,
) -> AsyncIterator[Agent]:
    """A client that starts the server as a child; ``person``: who answers, None where the client cannot ask."""
    env = {"OPSTAGE_API_URL": api_url, "OPSTAGE_TOKEN": token, "OPSTAGE_PERSON_TOKEN": person_token}
    with (folder / "mcp-stdio.log").open("a") as log:
        transport = stdio_client(stdio_parameters(env, folder), errlog=log)
        async with Client(transport, elicitation_callback=person, mode=mode) as client:
            yield Agent(client)


@asynccontextmanager
async def over_http(
    url: str,
    token: str,
    *,
    person_token: str = "",
    person: ElicitationFnT | None = None,
    mode: str = LEGACY,
) -> AsyncIterator[Agent]:
    """A client of a running ``McpProcess``."""
    headers = {"Authorization": f"Bearer {token}"}
    if person_token:
        headers["X-Opstage-Person-Token"] = person_token
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=person, mode=mode) as client:
            yield Agent(client)
