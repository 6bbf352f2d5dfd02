"""Calls to the Opstage API, each with the credential of whoever asked. Nothing of one caller is kept for another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from staging.contracts.error import ErrorBody, ErrorCode, ErrorResponse
from staging.domain.errors import OpstageError, Transient

_ANSWER_S = 30.0


class ToolRefused(Exception):
    """The contract's error object on its way to the model."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(error.code.value)
        self.error = error


def refused(error: OpstageError, locale: str) -> ToolRefused:
    """An error of our own making in the shape of the API's."""
    return ToolRefused(error.body(locale).error)


class Upstream:
    """One connection pool to the API at ``base_url``; use as an async context manager."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self.base_url, timeout=httpx.Timeout(_ANSWER_S, connect=5.0)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()


@dataclass(frozen=True, slots=True)
class Caller:
    """``upstream`` with one bearer token. ``locale`` is for errors of the way there; the API's own speak the user's."""

    upstream: Upstream
    token: str
    locale: str = "en"

    async def get(self, *path: str, patience_s: float = 0.0, **query: Any) -> Any:
        """GET ``/v1/path…``; ``patience_s``: seconds the API may take beyond the usual. Raises ToolRefused."""
        return await self._call("GET", path, patience_s, params=query)

    async def post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        """POST ``body`` (nothing where None) to ``/v1/path…``. Raises ToolRefused."""
        if body is None:
            return await self._call("POST", path, 0.0)
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        return await self._call("POST", path, 0.0, content=content)

    async def _call(self, method: str, path: tuple[str, ...], patience_s: float, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        if "content" in request:
            headers["Content-Type"] = "application/json"
        address = "/v1/" + "/".join(_quoted(step) for step in path)
        timeout = httpx.Timeout(_ANSWER_S + patience_s, connect=5.0)
        try:
            response = await self.upstream._client.request(
                method, address, headers=headers, timeout=timeout, **request
            )
        except httpx.HTTPError as error:
            raise self._away() from error
        if response.is_success:
            return self._parsed(response)
        try:
            raise ToolRefused(ErrorResponse.model_validate_json(response.content).error)
        except ValidationError as error:  # not Opstage that answers there
            raise self._away() from error

    def _parsed(self, response: httpx.Response) -> Any:
        try:
            # amounts are text already; should a number with a point ever come, its digits are kept
            return json.loads(response.content, parse_float=str) if response.content else None
        except ValueError as error:
            raise self._away() from error

    def _away(self) -> ToolRefused:
        return refused(Transient(ErrorCode.UNAVAILABLE, {"what": "Opstage API"}), self.locale)


def _quoted(step: str) -> str:
    """One step of a path, whatever is in it; dots alone would be walked instead of asked for."""
    quoted = quote(step, safe="", errors="replace")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")
