"""Streamable HTTP: no identity of its own, no request without a token, no session for others, no foreign pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import MCPError, types

from staging.embedded.spawn import free_port
from tests.integration.mcp.conftest import Way
from tests.support.api import AGENT, PERSON, Door, open_door
from tests.support.demo_requests import new_customer
from tests.support.mcp import MODERN, McpProcess, Person, over_http, over_stdio
from tests.support.private import EmbeddedRedis

pytestmark = pytest.mark.anyio
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def raw(mcp_http: McpProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=mcp_http.url.removesuffix("/mcp"), headers=ACCEPT, timeout=30) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer ops_never-issued", "Basic dTpw", "Bearer é"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_nothing_answers_without_a_token_the_api_knows(raw: httpx.Client, sent: str, method: str) -> None:
    headers = [(b"Authorization", sent.encode())] if sent else []
    response = raw.request(method, "/mcp", headers=headers, json=INITIALIZE if method == "POST" else None)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "unauthenticated"


def test_a_token_in_the_address_is_no_token(raw: httpx.Client, door: Door) -> None:
    token = door.token("u-lin", AGENT)
    for name in ("token", "access_token", "authorization"):
        assert raw.post("/mcp", params={name: token}, json=INITIALIZE).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8765"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 200),
        ({}, 200),
    ],
)
def test_foreign_hosts_and_pages_are_refused(
    raw: httpx.Client, door: Door, headers: dict[str, str], status: int
) -> None:
    response = raw.post("/mcp", headers={**bearer(door.token("u-lin", AGENT)), **headers}, json=INITIALIZE)
    assert response.status_code == status
    assert ("mcp-session-id" in response.headers) is (status == 200)


@pytest.mark.parametrize(
    ("name", "value", "status"), [("Host", "evil.example", 421), ("Origin", "https://evil.example", 403)]
)
def test_so_are_they_at_the_newest_revision(
    raw: httpx.Client, door: Door, name: str, value: str, status: int
) -> None:
    headers = {**bearer(door.token("u-lin", AGENT)), "mcp-protocol-version": MODERN, name: value}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert raw.post("/mcp", headers=headers, json=call).status_code == status


def opened(raw: httpx.Client, token: str) -> dict[str, str]:
    """Headers of a session of ``token``."""
    response = raw.post("/mcp", headers=bearer(token), json=INITIALIZE)
    return {"mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}


def test_a_session_answers_only_to_the_credentials_that_opened_it(raw: httpx.Client, door: Door) -> None:
    mine, person = door.token("u-lin", AGENT), {"X-Opstage-Person-Token": door.token("u-lin", PERSON)}
    session = opened(raw, mine)
    ping: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    answer = {"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"confirm": True}}}
    for other in (
        bearer(door.token("u-zhao", AGENT)),
        bearer(door.token("u-lin", AGENT)),
        bearer(mine) | person,
    ):
        for message in (ping, answer):
            response = raw.post("/mcp", headers={**other, **session}, json=message)
            assert response.status_code == 404, response.text
        assert raw.delete("/mcp", headers={**other, **session}).status_code == 404
    assert raw.post("/mcp", headers={**bearer(mine), **session}, json=ping).status_code == 200


def test_a_token_that_has_ended_ends_the_session(raw: httpx.Client, door: Door) -> None:
    token = door.token("u-lin", AGENT)
    session = opened(raw, token)
    path = door.folder / "tokens.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept[:-1]))
    try:
        call = {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "my_todos", "arguments": {}},
        }
        response = raw.post("/mcp", headers={**bearer(token), **session}, json=call)
        assert "unauthenticated" in response.text
    finally:
        path.write_text(json.dumps(kept))


async def test_two_users_of_one_server_see_their_own(plain: Way) -> None:
    async with plain.agent("u-lin") as lin, plain.agent("u-zhao") as zhao:
        operation = plain.door.stage("u-lin", **new_customer())["id"]
        mine = await lin.call("operation_status", operationId=operation)
        assert mine["operation"]["operationId"] == operation
        missing = await zhao.refusal("operation_status", operationId="never-was")
        assert await zhao.refusal("operation_status", operationId=operation) == missing
        assert await zhao.refusal("cancel_operation", operationId=operation) == missing
        assert operation not in str(await zhao.call("my_todos"))
        done = await lin.call("cancel_operation", operationId=operation, reason="不需要了")
    assert (done["operation"]["code"], done["operation"]["finished"]) == (450, True)


def test_a_body_beyond_the_limit_is_refused(raw: httpx.Client, door: Door) -> None:
    headers = bearer(door.token("u-lin", AGENT))
    response = raw.post("/mcp", headers=headers, content=b'{"x": "' + b"a" * 2_100_000 + b'"}')
    assert response.status_code == 413


def test_without_the_api_no_session_is_opened(door: Door) -> None:
    with McpProcess(f"http://127.0.0.1:{free_port()}", door.folder, name="mcp-alone") as process:
        headers = {**ACCEPT, **bearer(door.token("u-lin", AGENT))}
        response = httpx.post(process.url, headers=headers, json=INITIALIZE)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "unavailable")


async def test_an_api_that_is_away_is_said_so(door: Door) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with over_stdio(nowhere, door.folder, door.token("u-lin", AGENT), person=Person()) as agent:
        refused = await agent.refusal("find_forms")
        assert refused["code"] == "unavailable"
        with pytest.raises(MCPError) as caught:
            await agent.tools()
        assert caught.value.error.data["error"]["code"] == "unavailable"


async def test_an_api_that_goes_away_and_comes_back_loses_no_confirm(
    door: Door, mcp_http: McpProcess
) -> None:
    person = Person()
    tokens = door.token("u-lin", AGENT), door.token("u-lin", PERSON)
    async with over_http(mcp_http.url, tokens[0], person_token=tokens[1], person=person) as agent:
        answer = await agent.call("preview_change", **new_customer())

        async def asked_while_it_goes(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            door.api.stop()
            return Person().reply

        agent.client.session._elicitation_callback = asked_while_it_goes
        refused = await agent.refusal("confirm_operation", preparationId=answer["preparationId"])
        assert refused["code"] == "unavailable"
        assert "不要重新准备" in refused["message"]
        door.api.start()
        agent.client.session._elicitation_callback = person
        again = await agent.call("confirm_operation", preparationId=answer["preparationId"])
    assert len(again["operations"]) == 1
    body = {"filter": {"preparationId": answer["preparationId"]}}
    assert len(door.as_("u-lin").post("/v1/operations/query", body)["items"]) == 1


def test_guesses_are_counted_to_whoever_makes_them(tmp_path: Path, session_redis: EmbeddedRedis) -> None:
    """Not to this server, through which everybody comes."""
    with (
        open_door("sqlite", session_redis.url, tmp_path, failed_credential_limit="3/minute") as door,
        McpProcess(door.url, door.folder) as mcp,
    ):

        def statuses(address: str, token: str, times: int = 1) -> list[int]:
            transport = httpx.HTTPTransport(local_address=address)
            with httpx.Client(transport=transport, headers=ACCEPT | bearer(token), timeout=30) as client:
                return [client.post(mcp.url, json=INITIALIZE).status_code for _ in range(times)]

        assert statuses("127.0.0.2", "ops_guess", 5) == [401] * 3 + [429] * 2
        assert statuses("127.0.0.2", door.token("u-lin", AGENT)) == [429]
        assert statuses("127.0.0.3", door.token("u-chen", AGENT)) == [200]
