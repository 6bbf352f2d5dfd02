"""The HTTP door (CONTRACT section 4): one app, all services behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from staging.api import errors, forms, health, operations, preparations, queries, stream
from staging.api.auth.introspect import IntrospectAuthenticator
from staging.api.auth.jwt import JwtAuthenticator
from staging.api.auth.static import StaticAuthenticator
from staging.api.door import Door
from staging.api.hub import Hub
from staging.api.limits import Limits
from staging.api.pages import native, router as pages
from staging.bootstrap import open_services
from staging.domain.credential import Authenticator
from staging.settings import Settings, get_settings


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
            native.install(app, services.databases.adapter)
            async with Hub(settings.redis_url.get_secret_value(), services.feed) as hub:
                app.state.hub = hub
                yield

    app = FastAPI(
        title="Opstage",
        version="1",
        summary="Staged, confirmed, exactly-once ERP operations for AI agents",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.authenticator = make_authenticator(settings)
    app.state.limits = Limits(settings)
    errors.install(app)
    app.add_middleware(Door)
    # Their routes, not the routers: FastAPI looks for a route of an included router twice, and through all before it.
    for router in (preparations.router, operations.router, stream.router, forms.router, queries.router):
        app.router.routes.extend(router.routes)
    for router in (health.router, pages.router):
        app.router.routes.extend(router.routes)
    app.mount("/static", pages.static_files())
    return app
