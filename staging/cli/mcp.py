"""``opstage mcp``: the tools an agent's model may call, over stdio or streamable HTTP."""

from __future__ import annotations

import logging
import socket
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from staging.cli.console import Exit, say
from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused, Transient
from staging.settings import Settings, get_settings

if TYPE_CHECKING:  # the SDK and the web server are loaded when they are needed
    from mcp.server.transport_security import TransportSecuritySettings

_GRACE_S = 5


def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="streamable HTTP instead of stdio · 使用 HTTP")
    ] = False,
    host: Annotated[str, typer.Option(help="with --http: address to listen on · 监听地址")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="with --http · 端口")] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="with --http: name clients call it by · 允许的主机名")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(help="with --http: origin of a web page · 允许的网页来源")
    ] = None,
) -> None:
    """MCP server; over stdio with OPSTAGE_TOKEN, over HTTP with each request's own token · MCP 服务"""
    settings = get_settings()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    if not http:
        _stdio(settings)
        return
    from staging.mcp.http import security_for

    try:
        security = security_for(host, allowed_host or [], allowed_origin or [])
    except ValueError:
        say(
            f"监听 {host} 时须用 --allowed-host 指明客户端使用的主机名",
            f"To listen on {host}, name with --allowed-host what clients call it by",
        )
        raise typer.Exit(Exit.USAGE) from None
    _http(settings, host, port or settings.mcp_port, security)


def _stdio(settings: Settings) -> None:
    token = settings.token.get_secret_value()
    if not token:
        raise Refused(
            ErrorCode.UNAUTHENTICATED,
            text={
                "zh": "未设置 OPSTAGE_TOKEN（智能体的凭证）",
                "en": "OPSTAGE_TOKEN (the agent's credential) is not set",
            },
        )
    import anyio
    from mcp.server.stdio import stdio_server

    from staging.mcp.identity import Identity, fixed
    from staging.mcp.server import make_server
    from staging.mcp.upstream import Upstream

    identity = Identity(token, settings.person_token.get_secret_value())

    async def serve() -> None:
        async with Upstream(settings.client_url) as upstream, stdio_server() as (read, write):
            server = make_server(upstream, fixed(identity))
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def _http(settings: Settings, host: str, port: int, security: TransportSecuritySettings) -> None:
    import anyio
    import uvicorn

    from staging.mcp.http import PATH, make_app
    from staging.mcp.upstream import Upstream

    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"MCP  http://{shown}:{port}{PATH}", f"MCP  http://{shown}:{port}{PATH}")

    async def serve() -> None:
        async with Upstream(settings.client_url) as upstream:
            config = uvicorn.Config(
                make_app(upstream, security, settings.body_max_bytes),
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
            await uvicorn.Server(config).serve(sockets=[listening])

    anyio.run(serve)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises unavailable where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)  # from here on clients wait instead of being refused
    except OSError as error:
        listening.close()
        text = {
            "zh": f"无法监听 {host}:{port}：{error.strerror}；请用 --port 换一个端口",
            "en": f"Cannot listen on {host}:{port} ({error.strerror}); choose another --port",
        }
        raise Transient(ErrorCode.UNAVAILABLE, text=text) from error
    return listening
