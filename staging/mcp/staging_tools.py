"""Tools that stage a change, and follow what became of it. None of them confirms."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from staging.contracts.error import Wire
from staging.contracts.status import StatusCode
from staging.domain.json_schema import lean, nested
from staging.mcp import arguments as a, texts
from staging.mcp.directory import Directory, FormEntry, Operation
from staging.mcp.shapes import Answer, OperationInfo, PreparedAnswer, StatusAnswer, TodosAnswer
from staging.mcp.tools import (
    CHANGES,
    READS,
    STAGES,
    Call,
    Run,
    Tool,
    operation_info,
    pending,
    prepared,
)

_CREATES = "create"


async def preview_change(call: Call, given: a.PreviewChange) -> PreparedAnswer:
    shared = {"conversationId": given.conversation_id, "supersedes": given.supersedes}
    changes = [_change(given), *(_change(other) for other in given.also)]
    return await prepared(call, shared | (changes[0] if len(changes) == 1 else {"items": changes}))


def _change(given: a.Change) -> dict[str, Any]:
    """As the API takes it; payloads go on exactly as they came."""
    wire = given.model_dump(
        mode="json",
        by_alias=True,
        exclude_defaults=True,
        include=set(a.Change.model_fields) - {"payload", "source_ref"},
    )
    if given.source_ref is not None:
        wire["sourceRef"] = given.source_ref
    return wire | {"payload": given.payload}


async def operation_status(call: Call, given: a.OperationStatus) -> StatusAnswer:
    deadline = time.monotonic() + given.wait_seconds
    path = ("operations", given.operation_id)
    now = await call.api.get(*path)
    while not _settled(now) and (left_s := deadline - time.monotonic()) > 0:
        newer = await call.api.get(
            *path, "status", patience_s=left_s, wait=round(left_s, 3), after=now["seq"]
        )
        now = {**now, **newer}
    return await _status(call, await call.api.get(*path) if given.wait_seconds else now)


def _settled(operation: Mapping[str, Any]) -> bool:
    """Nothing will happen by itself: it is over, or waits for a person."""
    code = StatusCode.of(operation["code"])
    return code is None or code.is_terminal or code in (StatusCode.WAITING_USER, StatusCode.WAITING_APPROVAL)


async def my_todos(call: Call, given: a.MyTodos) -> TodosAnswer:
    found = await call.api.get("todos", limit=given.limit)

    def infos(name: str) -> list[OperationInfo]:
        return [operation_info(view, call.locale) for view in found[name]]

    return TodosAnswer(
        waiting=infos("waiting"),
        running=infos("running"),
        recent=infos("recent"),
        pending=await pending(call),
    )


async def cancel_operation(call: Call, given: a.CancelOperation) -> StatusAnswer:
    path = ("operations", given.operation_id, "cancel")
    return await _status(call, await call.api.post(*path, body={"reason": given.reason}))


async def _status(call: Call, view: Mapping[str, Any]) -> StatusAnswer:
    return StatusAnswer(operation=operation_info(view, call.locale), pending=await pending(call))


def command_tools(directory: Directory) -> list[Tool]:
    """One typed ``prepare_…`` tool for each registered command the caller is granted."""
    return [_command_tool(name, form, command) for name, (form, command) in directory.tools.items()]


def _command_tool(name: str, form: FormEntry, command: Operation) -> Tool:
    async def run(call: Call, given: a.PrepareCommand) -> PreparedAnswer:
        wire = given.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"payload"})
        return await prepared(call, wire | {"commandType": command.command_type, "payload": given.payload})

    words = [f"{command.label} ({form.label}, {command.command_type}).", command.description, texts.STAGED]
    description = "\n".join([*(w for w in words if w), texts.NAMES_AND_AMOUNTS])
    title = (f"准备：{command.label}", f"Prepare: {command.label}")
    return Tool(
        name, title, description, a.PrepareCommand, PreparedAnswer, STAGES, run, _input_schema(command)
    )


def _input_schema(command: Operation) -> dict[str, Any]:
    """The envelope with the command's own schema as ``payload``; a command that creates acts on no record."""
    envelope = lean(a.PrepareCommand.model_json_schema(by_alias=True))
    if command.op_type == _CREATES:
        del envelope["properties"]["record"]
    return nested(envelope, "payload", command.input_schema or {})


def _tool(name: str, arguments: type[Wire], answer: type[Answer], annotations: Any, run: Run) -> Tool:
    return Tool(name, texts.TITLES[name], texts.DESCRIPTIONS[name], arguments, answer, annotations, run)


TOOLS = (
    _tool("preview_change", a.PreviewChange, PreparedAnswer, STAGES, preview_change),
    _tool("operation_status", a.OperationStatus, StatusAnswer, READS, operation_status),
    _tool("my_todos", a.MyTodos, TodosAnswer, READS, my_todos),
    _tool("cancel_operation", a.CancelOperation, StatusAnswer, CHANGES, cancel_operation),
)
