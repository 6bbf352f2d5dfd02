"""Request bodies and addresses, taken strictly: exact numbers, no duplicate keys, size and depth bounded, nothing
unknown; all before pydantic sees them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from staging.api.turns import in_turn
from staging.contracts.error import ErrorCode, Wire
from staging.domain.errors import FieldProblem, OpstageError, Refused, invalid
from staging.domain.intake import parse_json, sanitize_text
from staging.settings import Settings

_WRAPPING_DEPTH = 4  # levels of a request above a payload: items, their list, the payload's own name


class BodyRefused(HTTPException):
    """Carries our error through FastAPI's body reading, which lets only HTTPException pass."""

    def __init__(self, error: OpstageError) -> None:
        super().__init__(error.http_status)
        self.error = error


class Nothing(Wire):
    """A body that says nothing: ``{}``, or none at all."""


class StrictRequest(Request):
    """``json()`` gives int, Decimal, str, bool, None, list and dict: never a float."""

    @property
    def _settings(self) -> Settings:
        settings: Settings = self.app.state.settings
        return settings

    async def body(self) -> bytes:
        """The whole body. Raises payload_too_large as soon as it is, whatever Content-Length said or did not say."""
        if not hasattr(self, "_body"):
            limit = self._settings.body_max_bytes
            too_large = BodyRefused(Refused(ErrorCode.PAYLOAD_TOO_LARGE, {"limit": f"{limit:,} B"}))
            announced = self.headers.get("content-length", "0")
            if not (announced.isascii() and announced.isdigit()) or int(announced[:20]) > limit:
                raise too_large
            parts, size = [], 0
            async for part in self.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
            self._body = b"".join(parts)
            self._require_json()
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            settings = self._settings
            depth = settings.payload_max_depth + _WRAPPING_DEPTH
            try:
                self._json = parse_json(await self.body(), max_bytes=settings.body_max_bytes, max_depth=depth)
            except OpstageError as error:
                raise BodyRefused(error) from error
        return self._json

    def _require_json(self) -> None:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self._body and kind != "application/json":
            reason = {
                "zh": "请求头 Content-Type 须为 application/json",
                "en": "send Content-Type: application/json",
            }
            raise BodyRefused(Refused(ErrorCode.PAYLOAD_INVALID, text=reason))


class StrictRoute(APIRoute):
    """A route whose handler gets a ``StrictRequest`` and whose address takes only the parameters it names. A handler
    that is a plain function runs in a thread, ``in_turn``."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, status_code: int | None = None, **kw: Any
    ) -> None:
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = in_turn(endpoint, status_code)
        super().__init__(path, endpoint, status_code=status_code, **kw)

    async def admit(self, request: Request) -> None:
        """What must hold before anything of the request is read. Raises OpstageError."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        known = {parameter.alias for parameter in self.dependant.query_params}

        async def strict(request: Request) -> Response:
            await self.admit(request)
            unknown = [name for name in request.query_params if name not in known]
            if unknown:
                raise invalid(
                    [FieldProblem(sanitize_text(n, 100), ErrorCode.FIELD_UNKNOWN) for n in unknown[:20]]
                )
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
