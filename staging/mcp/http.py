"""Streamable HTTP. The server holds no identity: each request brings its bearer token, which goes on to the API.

In front of the SDK's transport stands ``Guard``: no request without a token the API knows, and a session answers only
to the credentials that opened it, so that nobody else's answer to a question can reach it. The transport itself refuses
foreign Host and Origin headers (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Sequence

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from staging.contracts.error import ErrorBody, ErrorCode, ErrorResponse
from staging.domain.errors import HTTP_STATUS, Refused
from staging.mcp.directory import Who
from staging.mcp.identity import PERSON_HEADER, Identity, bearer_of, from_request
from staging.mcp.server import make_server
from staging.mcp.upstream import Caller, ToolRefused, Upstream, refused

log = logging.getLogger(__name__)
PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_FRESH_S = 30.0  # no longer than the API itself may keep what it learnt about a token
_MAX_KEPT = 10_000


class Guard:
    """Plain ASGI, so that a stream costs no task of its own here."""

    def __init__(self, app: ASGIApp, upstream: Upstream) -> None:
        self._app, self._upstream = app, upstream
        self._known: dict[str, tuple[float, Who]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            identity = Identity(
                bearer_of(headers.get("authorization", "")), headers.get(PERSON_HEADER, "").strip()
            )
            try:
                who = await self._verified(identity.token, (scope.get("client") or ("",))[0])
            except ToolRefused as refusal:
                await _response(refusal.error)(scope, receive, send)
                return
            # the transport ties a session to this user; the two tokens together are who that is
            token = AccessToken(token="", client_id=identity.key, scopes=[], subject=who.user_id)
            scope["user"] = AuthenticatedUser(token)
        await self._app(scope, receive, send)

    async def _verified(self, token: str, client: str) -> Who:
        """Whom the API takes the bearer of ``token`` for. Raises ToolRefused: unauthenticated, or unavailable."""
        if not token or not token.isascii():
            raise refused(Refused(ErrorCode.UNAUTHENTICATED), "en")
        key = Identity(token).key
        known = self._known.get(key)
        if known and known[0] > time.monotonic():
            return known[1]
        who = Who.model_validate(await Caller(self._upstream, token, client=client).get("me"))
        if len(self._known) >= _MAX_KEPT:
            self._known.clear()
        self._known[key] = (time.monotonic() + _FRESH_S, who)
        return who


def make_app(upstream: Upstream, security: TransportSecuritySettings, max_body_bytes: int) -> ASGIApp:
    """The ASGI app; it serves ``PATH``. ``upstream`` is the caller's to close."""
    server = make_server(upstream, from_request)
    app = server.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=max_body_bytes, transport_security=security
    )
    return Guard(app, upstream)


def security_for(host: str, hosts: Sequence[str], origins: Sequence[str]) -> TransportSecuritySettings:
    """Host and Origin headers to let in when listening on ``host``: the names given; on loopback, its own too.

    Raises ValueError where that leaves none: an address open to a network must be known by name.
    """
    names = [*hosts, *(LOOPBACK if is_loopback(host) else ())]
    if not names:
        raise ValueError(host)
    own = [f"http://{name}:*" for name in LOOPBACK] if is_loopback(host) else []
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*origins, *own],
    )


def is_loopback(host: str) -> bool:
    """True for an address that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _response(error: ErrorBody) -> JSONResponse:
    body = ErrorResponse(error=error).model_dump(mode="json", by_alias=True, exclude_none=True)
    headers = {"WWW-Authenticate": "Bearer"} if error.code is ErrorCode.UNAUTHENTICATED else {}
    return JSONResponse(body, HTTP_STATUS[error.code], headers)
