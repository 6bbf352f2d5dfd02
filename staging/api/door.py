"""The outermost layer: security headers and a line in the log for every answer, and no answer without a shape."""

from __future__ import annotations

import logging
import time

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from staging.api.errors import path_of, unexpected

log = logging.getLogger("opstage.access")

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
]
_V1_HEADERS = [*_HEADERS, (b"cache-control", b"no-store")]


class Door:
    """Plain ASGI, so that a stream costs no task of its own here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message["headers"])
                given = {name.lower() for name, _ in headers}
                wanted = _V1_HEADERS if scope["path"].startswith("/v1/") else _HEADERS
                message["headers"] = headers + [header for header in wanted if header[0] not in given]
            await send(message)

        try:
            await self._app(scope, receive, dressed)
        except Exception as error:
            response = unexpected(HTTPConnection(scope), error)
            if status:  # too late for another answer: the connection breaks
                raise
            await response(scope, receive, dressed)
        finally:
            took_ms = (time.monotonic() - started) * 1000
            log.info("%s %s %s %.0f ms", scope["method"], path_of(scope), status or "-", took_ms)
