"""Request bodies: strict JSON (exact numbers, no duplicate keys, size and depth bounded) before pydantic sees them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from staging.domain.errors import OpstageError
from staging.domain.intake import parse_json
from staging.settings import get_settings


class BodyRefused(HTTPException):
    """Carries our error through FastAPI's body reading, which lets only HTTPException pass."""

    def __init__(self, error: OpstageError) -> None:
        super().__init__(error.http_status)
        self.error = error


class StrictRequest(Request):
    """``json()`` gives int, Decimal, str, bool, None, list and dict: never a float."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            settings = get_settings()
            try:
                body = await self.body()
                self._json = parse_json(
                    body, max_bytes=settings.body_max_bytes, max_depth=settings.payload_max_depth + 4
                )
            except OpstageError as error:
                raise BodyRefused(error) from error
        return self._json


class StrictRoute(APIRoute):
    """A route whose handler gets a ``StrictRequest``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
