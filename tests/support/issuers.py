"""Whoever vouches for tokens in tests: an issuer that signs JWTs and publishes its keys, and an ERP's whoami. Both are
HTTP servers on loopback that can be made to be down, slow or wrong."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from staging.embedded.spawn import free_port

ISSUER, AUDIENCE = "https://issuer.example", "opstage"
# Writes the answer; gets the bearer token.
Answer = Callable[[BaseHTTPRequestHandler, str], None]


class Server:
    """One answer for every GET. ``stop`` and ``start`` keep the port; ``asked`` counts what came."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, 0
        self.port = free_port()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> Self:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                with contextlib.suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # the other side did not wait
                    outer.answer(self, self.headers.get("Authorization", "").removeprefix("Bearer "))

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def reply(handler: BaseHTTPRequestHandler, body: Any, status: int = 200) -> None:
    """``body`` as JSON; bytes as they are."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


class Issuer(Server):
    """Signs with ``key``; publishes ``published``."""

    def __init__(self) -> None:
        super().__init__(
            lambda handler, _: reply(handler, KeySet(list(self.published)).as_dict(private=False))
        )
        self.key: RSAKey | ECKey = RSAKey.generate_key(2048, {"kid": "rsa-1"})
        self.published: list[RSAKey | ECKey | OctKey] = [self.key]

    @staticmethod
    def claims(**changes: Any) -> dict[str, Any]:
        """Of u-lin, for an hour; None leaves a claim out."""
        now = int(time.time())
        values = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": now + 3600,
            "iat": now,
            "sub": "u-lin",
            "brands": "B001",
            "subsidiary": "S01",
            "kind": "person",
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def token(
        self, *, alg: str = "RS256", key: Any = None, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        key = self.key if key is None else key
        headers = {"alg": alg, "kid": key.kid, **(header or {})}
        return jwt.encode(
            {k: v for k, v in headers.items() if v is not None}, self.claims(**claims), key, [alg]
        )


class Whoami(Server):
    """Knows the tokens in ``users``: token → its claims."""

    def __init__(self) -> None:
        super().__init__(self._tell)
        self.users: dict[str, dict[str, Any]] = {}

    def add(self, token: str, **changes: Any) -> str:
        claims = {"active": True, "user": "u-lin", "brands": "B001", "subsidiary": "S01", "kind": "person"}
        self.users[token] = claims | changes
        return token

    def _tell(self, handler: BaseHTTPRequestHandler, token: str) -> None:
        known = self.users.get(token)
        reply(handler, known or {"active": False}, 200 if known else 401)
