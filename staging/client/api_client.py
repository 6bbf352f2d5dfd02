"""A small client of the HTTP API: one credential, the contract's errors as our own exceptions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from staging.contracts.error import ErrorBody, ErrorCode, ErrorResponse
from staging.domain.errors import OpstageError, Transient

_AGAIN_S = 1.0
_SILENCE_S = 60.0  # a stream shows a sign of life every 15 s


class ApiRefused(OpstageError):
    """The API's own refusal; message and hint are already in the caller's language."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(error.code, text={"zh": error.message, "en": error.message})
        self.error = error

    def hint(self, locale: str) -> str:
        del locale
        return self.error.hint


class ApiClient:
    """``base_url`` without the ``/v1``; ``token`` travels in the Authorization header only; times out in seconds.

    Raises ``ApiRefused`` for what the API refuses, ``unavailable`` (Transient) where it cannot be reached.
    """

    def __init__(self, base_url: str, token: str, locale: str, timeout_s: float = 30.0) -> None:
        self._client = httpx.Client(
            base_url=base_url.rstrip("/") + "/v1/",
            timeout=httpx.Timeout(timeout_s, connect=3.0),
            headers={"Authorization": f"Bearer {token}", "Accept-Language": locale},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, *path: str, **query: Any) -> Any:
        """GET /v1/path…"""
        return self._call("GET", path, params=query)

    def post(self, *path: str, body: Any = None) -> Any:
        """POST /v1/path… with a JSON body."""
        return self._call("POST", path, json=body)

    def events(self, *path: str, patience_s: float = 30.0) -> Iterator[dict[str, Any]]:
        """Server-sent events of /v1/path…, without end. A stream that breaks is resumed where it broke.

        Raises ``unavailable`` where nobody is there at first, or for ``patience_s`` seconds later on; ``ApiRefused``
        where the stream is refused, or its credential no longer accepted.
        """
        last_id, give_up_at = "", time.monotonic()
        while True:
            try:
                for event_id, data in self._stream(path, last_id):
                    last_id, give_up_at = event_id or last_id, float("inf")
                    if data:
                        yield json.loads(data)
            except (httpx.TransportError, OpstageError) as error:
                if isinstance(error, OpstageError) and error.code is not ErrorCode.UNAVAILABLE:
                    raise
                give_up_at = min(give_up_at, time.monotonic() + patience_s)
                if time.monotonic() >= give_up_at:
                    raise unreachable() from error
            time.sleep(_AGAIN_S)

    def _stream(self, path: tuple[str, ...], last_id: str) -> Iterator[tuple[str, str]]:
        """Id and data of each event; either may be empty, both are for a sign of life."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        silence = httpx.Timeout(_SILENCE_S, connect=3.0)
        with self._client.stream("GET", path_of(path), timeout=silence, headers=headers) as response:
            if response.is_error:
                response.read()
                raise refusal_of(response)
            field = {"id": "", "data": ""}
            for line in response.iter_lines():
                name, _, value = line.partition(":")
                if not line:
                    yield field["id"], field["data"]
                    field = {"id": "", "data": ""}
                elif name in field:
                    field[name] = value.removeprefix(" ")

    def _call(self, method: str, path: tuple[str, ...], **kw: Any) -> Any:
        try:
            response = self._client.request(method, path_of(path), **kw)
        except httpx.TransportError as error:
            raise unreachable() from error
        if response.is_error:
            raise refusal_of(response)
        return response.json() if response.content else None


def path_of(steps: Iterable[str]) -> str:
    """``steps`` as a path, whatever is in them; dots alone would be walked instead of asked for."""
    quoted = (quote(step, safe="", errors="replace") for step in steps)
    return "/".join(step if step.strip(".") else step.replace(".", "%2E") for step in quoted)


def unreachable() -> Transient:
    """Nothing answered, or not Opstage."""
    return Transient(ErrorCode.UNAVAILABLE, {"what": "Opstage API"})


def refusal_of(response: httpx.Response) -> OpstageError:
    """The error of an answer that is none of success."""
    try:
        return ApiRefused(ErrorResponse.model_validate_json(response.content).error)
    except ValidationError:
        return Transient(ErrorCode.UNAVAILABLE, {"what": f"Opstage API (HTTP {response.status_code})"})
