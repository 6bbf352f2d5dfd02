"""One API over the demo ERP and one MCP server over HTTP for all of these tests; each way in is tried by each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from mcp.client.session import ElicitationFnT

from staging.domain.identity import Tenant
from tests.support.api import AGENT, B001, PERSON, Door, open_door
from tests.support.mcp import LEGACY, MODERN, Agent, McpProcess, over_http, over_stdio
from tests.support.private import EmbeddedRedis

WAYS = [(transport, mode) for transport in ("stdio", "http") for mode in (LEGACY, MODERN)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis) -> Iterator[Door]:
    with open_door("sqlite", session_redis.url, tmp_path_factory.mktemp("door")) as made:
        yield made


@pytest.fixture(scope="session")
def mcp_http(door: Door) -> Iterator[McpProcess]:
    with McpProcess(door.url, door.folder) as process:
        yield process


@dataclass
class Way:
    """One transport at one protocol revision."""

    transport: str
    mode: str
    door: Door
    http: McpProcess | None

    @asynccontextmanager
    async def agent(
        self,
        user: str,
        *,
        person: ElicitationFnT | None = None,
        tenant: Tenant = B001,
        person_token: str | None = None,
    ) -> AsyncIterator[Agent]:
        """An agent of ``user``. ``person_token``: None means that of the same user where there is a ``person``."""
        token = self.door.token(user, AGENT, tenant)
        if person_token is None:
            person_token = self.door.token(user, PERSON, tenant) if person else ""
        keys: dict[str, Any] = {"person_token": person_token, "person": person, "mode": self.mode}
        opened = (
            over_http(self.http.url, token, **keys)
            if self.http
            else over_stdio(self.door.url, self.door.folder, token, **keys)
        )
        async with opened as agent:
            yield agent


@pytest.fixture(params=WAYS, ids=["-".join(way) for way in WAYS])
def way(request: pytest.FixtureRequest, door: Door) -> Way:
    transport, mode = request.param
    http = request.getfixturevalue("mcp_http") if transport == "http" else None
    return Way(transport, mode, door, http)


@pytest.fixture
def plain(door: Door, mcp_http: McpProcess) -> Way:
    """The quickest way, for what does not depend on it."""
    return Way("http", LEGACY, door, mcp_http)
