"""The outermost layer: security headers and a line in the log for every answer, and no answer without a shape."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from staging.api.errors import path_of, unexpected

log = logging.getLogger("opstage.access")

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


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
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/v1/"):
                    headers.setdefault("Cache-Control", "no-store")
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
