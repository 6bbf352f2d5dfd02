"""A real agent framework (Pydantic AI) driven by a scripted model, no network: find form → query → prepare → the person
confirms → status, with real API, MCP server, worker and beat.

The script reads every next argument out of the answer before, as a model would; it knows no id beforehand.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.api import AGENT, PERSON, Door, open_door
from tests.support.demo_requests import word
from tests.support.mcp import MCP_COMMAND, McpProcess
from tests.support.private import EmbeddedRedis
from tests.support.processes import ROOT, BeatProcess, WorkerProcess
from tests.support.services import REQUIRE
from workers.erp.demo import oracle

if os.environ.get(REQUIRE) != "1":
    pytest.importorskip(
        "pydantic_ai", reason="pydantic-ai is not installed; to run these tests: install the group dev"
    )
from fastmcp.client.transports import StdioTransport
from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel

pytestmark = pytest.mark.anyio
Step = Callable[[dict[str, Any]], tuple[str, dict[str, Any]] | str]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("door")
    with (
        open_door("sqlite", session_redis.url, folder) as made,
        WorkerProcess(made.env, folder),
        BeatProcess(made.env, folder),
    ):
        yield made


@pytest.fixture(scope="module")
def server(door: Door) -> Iterator[McpProcess]:
    with McpProcess(door.url, door.folder) as process:
        yield process


def scripted(*steps: Step) -> tuple[FunctionModel, list[tuple[str, Any]]]:
    """A model that takes ``steps`` one after the other, each given the answer to the one before; and what it saw."""
    seen: list[tuple[str, Any]] = []
    left = list(steps)

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        answer: dict[str, Any] = {"tools": {tool.name: tool for tool in info.function_tools}}
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        for part in last.parts:
            if isinstance(part, ToolReturnPart):
                answer = json.loads(part.model_response_str())
                seen.append((part.tool_name, answer))
        step = left.pop(0)(answer)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(*step)])

    return FunctionModel(think), seen


def customers(door: Door, name: str) -> int:
    with door.services.databases.adapter.transaction() as tx:
        return len(oracle.rows(tx.connection, "elecustomer", sCustomerName=name))


def first_steps(name: str) -> list[Step]:
    """Up to the preparation."""

    def find(start: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        assert {"find_forms", "preview_change", "operation_status"} <= set(start["tools"])
        return "find_forms", {"q": "客户"}

    def query(found: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        form = next(f for f in found["forms"] if any(o["opType"] == "create" for o in f["operations"]))
        return "query_records", {"formId": form["formId"], "filter": {"name": name}}

    def prepare(page: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        assert page["page"]["total"] == 0
        payload = {"name": name, "type": "direct", "creditLimit": "1000.10"}
        return "preview_change", {"formId": "customer", "opType": "create", "payload": payload}

    return [find, query, prepare]


def tell_to_confirm(answer: dict[str, Any]) -> str:
    return f"请核对后在 {answer['confirmUrl']} 确认；{answer['next']}"


async def test_an_agent_prepares_and_the_person_confirms_on_their_page(
    door: Door, server: McpProcess
) -> None:
    name = word()
    headers = {"Authorization": f"Bearer {door.token('u-lin', AGENT)}"}
    toolset = MCPToolset(server.url, headers=headers, init_timeout=60, include_instructions=True)
    model, seen = scripted(*first_steps(name), tell_to_confirm)
    async with toolset:
        first = await Agent(model, toolsets=[toolset]).run(f"新建客户 {name}，信用额度 1000.10")
        prepared = seen[-1][1]
        assert [tool for tool, _ in seen] == ["find_forms", "query_records", "preview_change"]
        assert "尚未执行" in first.output
        assert customers(door, name) == 0

        body = door.as_("u-lin").post(f"/v1/preparations/{prepared['preparationId']}/confirm", {}, expect=202)
        operation = body["operations"][0]["id"]

        model, seen = scripted(
            lambda _: ("operation_status", {"operationId": operation, "waitSeconds": 30}),
            lambda answer: f"{answer['operation']['status']}: {answer['operation']['message']}",
        )
        second = await Agent(model, toolsets=[toolset]).run(
            "办好了吗？", message_history=first.all_messages()
        )
    assert second.output.startswith("success: ")
    assert "KH" in second.output
    assert customers(door, name) == 1


@pytest.mark.filterwarnings(
    "ignore:`elicitation_handler` will never be called"
)  # it is, by the call's own rounds
async def test_an_agent_over_stdio_has_the_person_asked_by_the_client(door: Door) -> None:
    name, shown = word(), []
    env = {
        "OPSTAGE_API_URL": door.url,
        "OPSTAGE_TOKEN": door.token("u-lin", AGENT),
        "OPSTAGE_PERSON_TOKEN": door.token("u-lin", PERSON),
        "PYTHONPATH": str(ROOT),
    }

    async def person(message: str, response_type: Any, params: Any, context: Any) -> dict[str, Any]:
        shown.append(message)
        assert customers(door, name) == 0
        return {"confirm": True}

    log = door.folder / "mcp-agent.log"
    transport = StdioTransport(sys.executable, list(MCP_COMMAND[1:]), env, str(door.folder), log_file=log)
    toolset = MCPToolset(transport, elicitation_handler=person, init_timeout=60)
    model, seen = scripted(
        *first_steps(name),
        lambda answer: ("confirm_operation", {"preparationId": answer["preparationId"]}),
        lambda answer: (
            "operation_status",
            {"operationId": answer["operations"][0]["operationId"], "waitSeconds": 30},
        ),
        lambda answer: f"{answer['operation']['status']}: {answer['operation']['message']}",
    )
    async with toolset:
        done = await Agent(model, toolsets=[toolset]).run(f"新建客户 {name}")
    confirmed = dict(seen)["confirm_operation"]
    assert (confirmed["confirmed"], confirmed["operations"][0]["finished"]) == (True, False)
    (message,) = shown
    assert f'"{name}"' in message
    assert done.output.startswith("success: 已创建客户")
    assert customers(door, name) == 1


async def test_a_refusal_is_something_the_model_can_correct(door: Door, server: McpProcess) -> None:
    name = word()
    headers = {"Authorization": f"Bearer {door.token('u-lin', AGENT)}"}
    toolset = MCPToolset(server.url, headers=headers, init_timeout=60, tool_error_behavior="failed")
    refusals = []

    def correct(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        refusals.append(json.loads(answer["error"])["error"])  # the framework puts a failure's text there
        return "preview_change", {
            "formId": "customer",
            "opType": "create",
            "payload": {"name": name, "type": "direct"},
        }

    wrong = {"formId": "customer", "opType": "create", "payload": {"name": name, "type": "直接", "rate": 1}}
    model, _ = scripted(lambda _: ("preview_change", wrong), correct, tell_to_confirm)
    async with toolset:
        await Agent(model, toolsets=[toolset]).run(f"新建客户 {name}")
    (refused,) = refusals
    assert {d["field"] for d in refused["details"]} == {"type", "rate"}
    assert customers(door, name) == 0
