"""One API over the demo ERP and one MCP server over HTTP for all of these tests; each way in is tried by each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ElicitationFnT

from staging.domain.identity import Tenant
from tests.support.api import AGENT, B001, PERSON, Door, open_door
from tests.support.demo_requests import word
from tests.support.mcp import LEGACY, MODERN, Agent, McpProcess, Person, over_http, over_stdio
from tests.support.private import EmbeddedRedis
from workers.erp.demo import oracle

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


@pytest.fixture
def other_door(
    request: pytest.FixtureRequest, tmp_path: Path, session_redis: EmbeddedRedis
) -> Iterator[Door]:
    """An API on a database of the engine that the test names."""
    with open_door(request.param, session_redis.url, tmp_path) as made:
        yield made


async def whole_job(way: Way) -> None:
    """Find form → query → prepare → the person confirms → status; what is in the ERP is looked up there."""
    name, person = word(), Person()
    async with way.agent("u-lin", person=person) as agent:
        (form,) = [
            f for f in (await agent.call("find_forms", q="客户"))["forms"] if f["formId"] == "customer"
        ]
        assert {o["opType"] for o in form["operations"]} >= {"create", "update"}
        found = await agent.call("query_records", formId="customer", page={"size": 3})
        assert len(found["items"]) == 3
        assert found["page"]["total"] >= 60
        prepared = await agent.call(
            "preview_change",
            formId="customer",
            opType="create",
            payload={"name": name, "type": "direct", "creditLimit": "1234567890123.45"},
        )
        assert prepared["state"] == "PREPARED"
        before = prepared["pending"]["count"]  # what other tests of this run left waiting
        assert prepared["items"][0]["preview"]["fields"][-1]["new"] == "1234567890123.45"
        assert _customers(way.door, name) == 0
        confirmed = await agent.call("confirm_operation", preparationId=prepared["preparationId"])
        assert confirmed["confirmed"]
        (shown,) = person.shown
        assert f'"{name}"' in shown
        assert '"1234567890123.45"' in shown
        (operation,) = confirmed["operations"]
        assert (operation["code"], operation["finished"]) == (100, False)
        assert confirmed["pending"]["count"] == before + 1
        assert _customers(way.door, name) == 0
        way.door.execute(operation["operationId"])
        done = await agent.call("operation_status", operationId=operation["operationId"], waitSeconds=10)
        assert (done["operation"]["status"], done["operation"]["code"]) == ("success", 200)
        assert done["operation"]["finished"]
        assert done["pending"]["count"] == before
        assert _customers(way.door, name) == 1


def _customers(door: Door, name: str) -> int:
    with door.services.databases.adapter.transaction() as tx:
        return len(oracle.rows(tx.connection, "elecustomer", sCustomerName=name))
