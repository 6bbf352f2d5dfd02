"""What a tool is, what it works with, and the answers they share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext

from staging.contracts.error import Wire
from staging.contracts.preparation import ChildSection, FieldChange, Preparation, PreparationItem
from staging.contracts.status import StatusCode
from staging.domain.json_schema import lean
from staging.mcp import texts
from staging.mcp.directory import Directory
from staging.mcp.identity import Identity
from staging.mcp.shapes import MANY, Answer, OperationInfo, Pending, PreparedAnswer, PreparedItem
from staging.mcp.upstream import Caller, Upstream

_LEGACY_ENDS = ("executed", "failed", "cancelled", "expired")
READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
STAGES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""A preparation is kept for its time and shown to the user; it changes nothing of theirs."""
CHANGES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one caller: their credential, what they may do, and the way back to their client."""

    upstream: Upstream
    identity: Identity
    directory: Directory
    context: ServerRequestContext[Any, Any]
    params: types.CallToolRequestParams
    may_confirm: bool

    @property
    def locale(self) -> str:
        return self.directory.me.locale

    @property
    def api(self) -> Caller:
        """The API, as the agent."""
        return Caller(self.upstream, self.identity.token, self.locale)

    @property
    def api_as_person(self) -> Caller:
        """The API, as the person; for confirming only."""
        return Caller(self.upstream, self.identity.person_token, self.locale)


Answered = Answer | types.InputRequiredResult
Run = Callable[[Call, Any], Awaitable[Answered]]


@dataclass(frozen=True, slots=True)
class Tool:
    """``arguments`` checks what is given, ``answer`` is what comes; the schemas describe them, where they say more."""

    name: str
    titles: tuple[str, str]
    description: str
    arguments: type[Wire]
    answer: type[Answer]
    annotations: types.ToolAnnotations
    run: Run
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None

    def listed(self, locale: str) -> types.Tool:
        """As a client sees it."""
        return types.Tool(
            name=self.name,
            title=texts.pick(self.titles, locale),
            description=self.description,
            input_schema=dict(self.input_schema or lean(self.arguments.model_json_schema(by_alias=True))),
            output_schema=dict(self.output_schema or self.answer.schema_of()),
            annotations=self.annotations,
        )


async def pending(call: Call) -> Pending:
    """How many of the user's operations are not finished."""
    one = {"page": {"number": 1, "size": 1}}
    every, unknown = await asyncio.gather(
        call.api.post("operations", "query", body={"filter": {"status": ["pending"]}, **one}),
        call.api.post("operations", "query", body={"filter": {"code": [StatusCode.UNKNOWN.value]}, **one}),
    )
    return Pending(count=_counted(every), unknown=_counted(unknown))


def _counted(result: Mapping[str, Any]) -> int:
    total = result["page"]["total"]  # null: not worth counting
    return MANY if total is None else int(total)


async def prepared(call: Call, request: Mapping[str, Any]) -> PreparedAnswer:
    """POST a preparation and say what it means."""
    made = Preparation.model_validate(await call.api.post("preparations", body=request))
    return PreparedAnswer(
        state=made.state,
        preparation_id=made.preparation_id,
        expires_at=made.expires_at,
        items=[_item(item) for item in made.items],
        confirm_url=f"{call.upstream.base_url}/?preparation={made.preparation_id}",
        next=texts.after_prepare(call.locale, confirm_here=call.may_confirm),
        pending=await pending(call),
    )


def _item(item: PreparationItem) -> PreparedItem:
    preview = item.preview
    told = preview.model_copy(
        update={
            "fields": [_change(change) for change in preview.fields],
            "children": [_section(section) for section in preview.children],
            "totals": [_change(change) for change in preview.totals],
        }
    )
    return PreparedItem(
        command_type=item.command_type,
        auto_execute=item.auto_execute,
        requires_approval=item.requires_approval,
        preview=told,
    )


def _section(section: ChildSection) -> ChildSection:
    lines = [
        line.model_copy(
            update={
                "fields": [_change(change) for change in line.fields],
                "children": [_section(below) for below in line.children],
            }
        )
        for line in section.lines
    ]
    return section.model_copy(update={"lines": lines})


def _change(change: FieldChange) -> FieldChange:
    """Texts only where they say more than the value."""
    return change.model_copy(
        update={
            "old_text": "" if change.old_text == str(change.old) else change.old_text,
            "new_text": "" if change.new_text == str(change.new) else change.new_text,
        }
    )


def operation_info(view: Mapping[str, Any], locale: str) -> OperationInfo:
    """What a model needs of an ``OperationView``."""
    code = StatusCode.of(view["code"])
    finished = code.is_terminal if code else view["status"] in _LEGACY_ENDS
    preview = view.get("preview")
    return OperationInfo.model_validate(
        {
            **view,
            "operationId": view["id"],
            "finished": finished,
            "next": texts.next_of(view["code"], locale),
            "title": preview.get("title", "") if isinstance(preview, Mapping) else "",
        }
    )
