"""The MCP server: which tools a caller sees, and how a call becomes an answer, whatever happens."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from staging.contracts.error import ErrorCode, ErrorResponse
from staging.domain.errors import OpstageError, Refused, Transient
from staging.mcp import arguments, confirming, query_tools, reading, staging_tools
from staging.mcp.directory import Directories, Directory
from staging.mcp.fit import fit
from staging.mcp.identity import Context, IdentityOf
from staging.mcp.texts import INSTRUCTIONS
from staging.mcp.tools import Call, Tool
from staging.mcp.upstream import ToolRefused, Upstream, refused

log = logging.getLogger(__name__)
NAME = "opstage"
FIXED: Sequence[Tool] = (*reading.TOOLS, *staging_tools.TOOLS)
_ANSWER_S = 900.0  # how long a person may think about a question that travels in requestState


class _Door:
    """Handlers of ``tools/list`` and ``tools/call``."""

    def __init__(self, upstream: Upstream, identity_of: IdentityOf) -> None:
        self._upstream, self._identity_of = upstream, identity_of
        self._directories = Directories(upstream)

    async def list_tools(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            directory = await self._directory(context)
        except ToolRefused as refusal:
            body = ErrorResponse(error=refusal.error).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
            raise MCPError(types.INTERNAL_ERROR, refusal.error.message, body) from refusal
        tools = [tool.listed(directory.me.locale) for tool in _tools(context, directory)]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        locale = "en"
        try:
            directory = await self._directory(context)
            locale = directory.me.locale
            return await self._call(context, params, directory)
        except ToolRefused as refusal:
            return _failed(refusal, locale)
        except OpstageError as error:
            return _failed(refused(error, locale), locale)
        except MCPError:
            raise
        except Exception:
            log.exception("unexpected error in tool %s", params.name)
            return _failed(refused(_ours(), locale), locale)

    async def _call(
        self, context: Context, params: types.CallToolRequestParams, directory: Directory
    ) -> types.CallToolResult | types.InputRequiredResult:
        tools = {tool.name: tool for tool in _tools(context, directory)}
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        call = Call(
            upstream=self._upstream,
            identity=self._identity_of(context),
            directory=directory,
            context=context,
            params=params,
            may_confirm="confirm_operation" in tools,
        )
        answered = await tool.run(call, arguments.read(tool.arguments, params.arguments or {}))
        if isinstance(answered, types.InputRequiredResult):
            return answered
        answer = fit(answered.to_json(), directory.me.locale)
        return types.CallToolResult(content=[_text(answer)], structured_content=answer)

    async def _directory(self, context: Context) -> Directory:
        identity = self._identity_of(context)
        if not identity.token:
            raise refused(Refused(ErrorCode.UNAUTHENTICATED), "en")
        return await self._directories.of(identity)


def make_server(upstream: Upstream, identity_of: IdentityOf) -> Server[Any]:
    """A server for any transport; ``identity_of`` says with whose credentials a request goes on."""
    door = _Door(upstream, identity_of)
    server: Server[Any] = Server(
        NAME,
        version=version("opstage"),
        title="Opstage",
        instructions=INSTRUCTIONS,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
        get_tool_input_schema=lambda _: None,  # no argument travels in a header
    )
    security = RequestStateSecurity(
        keys=[secrets.token_bytes(32)], ttl=_ANSWER_S, bind_principal=lambda context: identity_of(context).key
    )
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    return server


def _tools(context: Context, directory: Directory) -> list[Tool]:
    asking = confirming.confirming_tools(directory, context.session.client_capabilities)
    queries = query_tools.query_tools(directory)
    return [*FIXED, *queries, *staging_tools.command_tools(directory), *asking]


def _failed(refusal: ToolRefused, locale: str) -> types.CallToolResult:
    """The contract's error object as text: structured content would have to be the tool's own answer."""
    body = ErrorResponse(error=refusal.error).model_dump(mode="json", by_alias=True, exclude_none=True)
    return types.CallToolResult(content=[_text(fit(body, locale))], is_error=True)


def _text(value: Any) -> types.TextContent:
    return types.TextContent(text=json.dumps(value, ensure_ascii=False))


def _ours() -> Transient:
    text = {
        "zh": "Opstage 出现意外错误；请先查看 my_todos 再决定是否重试",
        "en": "Opstage made an unexpected error; look at my_todos before trying again",
    }
    return Transient(ErrorCode.UNAVAILABLE, {"what": "Opstage"}, text=text)
