"""Calls to the Opstage API, each with the credential of whoever asked. Nothing of one caller is kept for another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx

from staging.client.api_client import ApiRefused, path_of, refusal_of, unreachable
from staging.contracts.error import ErrorBody
from staging.domain.errors import OpstageError

_ANSWER_S = 30.0


class ToolRefused(Exception):
    """The contract's error object on its way to the model."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(error.code.value)
        self.error = error


def refused(error: OpstageError, locale: str) -> ToolRefused:
    """``error`` on its way; the API's own as it came, ours in ``locale``."""
    return ToolRefused(error.error if isinstance(error, ApiRefused) else error.body(locale).error)


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
    """``upstream`` with one bearer token. ``locale`` is for errors of the way there; the API's own speak the user's.

    ``client``: address of whoever brought the token, so that the API counts guesses to them and not to us.
    """

    upstream: Upstream
    token: str
    locale: str = "en"
    client: str = ""

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
        if self.client:
            headers["X-Forwarded-For"] = self.client
        if "content" in request:
            headers["Content-Type"] = "application/json"
        address = f"/v1/{path_of(path)}"
        timeout = httpx.Timeout(_ANSWER_S + patience_s, connect=5.0)
        try:
            response = await self.upstream._client.request(
                method, address, headers=headers, timeout=timeout, **request
            )
        except httpx.HTTPError as error:
            raise refused(unreachable(), self.locale) from error
        if response.is_error:
            raise refused(refusal_of(response), self.locale)
        try:
            # amounts are text already; should a number with a point ever come, its digits are kept
            return json.loads(response.content, parse_float=str) if response.content else None
        except ValueError as error:
            raise refused(unreachable(), self.locale) from error
