"""The HTTP door (CONTRACT section 4): one app, all services behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles
from limits import parse as parse_rate
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from staging.api import errors, forms, health, operations, preparations, stream
from staging.api.auth.introspect import IntrospectAuthenticator
from staging.api.auth.jwt import JwtAuthenticator
from staging.api.auth.static import StaticAuthenticator
from staging.api.hub import Hub
from staging.api.locale import locale_of
from staging.api.pages import router as pages
from staging.bootstrap import open_services
from staging.contracts.error import ErrorCode
from staging.domain.credential import Authenticator
from staging.domain.errors import Refused
from staging.settings import Settings, get_settings

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


def make_authenticator(settings: Settings) -> Authenticator:
    """The way of ``OPSTAGE_AUTH``. Raises ValueError where its settings are missing."""
    if settings.auth == "jwt":
        return JwtAuthenticator(settings)
    if settings.auth == "introspect":
        return IntrospectAuthenticator(settings)
    return StaticAuthenticator(settings.tokens_path)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Build the app; connections are opened when it starts serving and closed when it stops."""
    settings = settings or get_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_services(settings) as services:
            app.state.services = services
            async with Hub(settings.redis_url.get_secret_value()) as hub:
                app.state.hub = hub
                yield

    app = FastAPI(
        title="Opstage",
        version="1",
        summary="Staged, confirmed, exactly-once ERP operations for AI agents",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.authenticator = make_authenticator(settings)
    app.state.limiter = MovingWindowRateLimiter(MemoryStorage())
    app.state.rate = parse_rate(settings.rate_limit)
    errors.install(app)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=pages.STATIC))
    for module in (forms, preparations, operations, stream, health):
        app.include_router(module.router)

    @app.middleware("http")
    async def _guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length[:12]) > settings.body_max_bytes:
            limit = f"{settings.body_max_bytes} B"
            response: Response = errors.error_response(
                Refused(ErrorCode.PAYLOAD_TOO_LARGE, {"limit": limit}), locale_of(request)
            )
        else:
            response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        if request.url.path.startswith("/v1/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return app
