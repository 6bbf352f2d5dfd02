"""Every refusal leaves by the one error shape, in the caller's language."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope

from staging.api.body import BodyRefused
from staging.api.locale import locale_of
from staging.contracts.error import ErrorCode as E, ErrorResponse
from staging.domain.complaints import problems_of
from staging.domain.errors import OpstageError, Refused, Transient, invalid
from staging.storage.dberrors import classify_db_error, is_db_error

log = logging.getLogger(__name__)

# What clients may meet anywhere; listed in OpenAPI for every call.
RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorResponse, "description": text}
    for code, text in {
        400: "not valid JSON, or with text that no database can hold",
        401: "no valid credential",
        403: "not permitted",
        404: "not found, or not yours",
        409: "state, version or idempotency conflict",
        410: "expired",
        413: "too large",
        422: "not valid for the form, or refused by a rule",
        429: "too many requests",
        500: "an error of ours; nothing is known to have changed, look before trying again",
        503: "a service cannot be reached",
    }.items()
}
_PARTS = ("body", "query", "path", "header")
_HTTP_ZH = {404: "没有这个地址", 405: "该地址不支持此方法", 413: "内容超过上限"}
_HTTP_EN = {404: "There is no such path", 405: "This path does not take this method", 413: "It is too large"}


def error_response(error: OpstageError, locale: str, status: int = 0) -> JSONResponse:
    """The error as HTTP; ``status`` instead of the code's own. ``Retry-After`` where it knows a number of seconds."""
    headers = {}
    if "retry_after" in error.params:
        headers["Retry-After"] = str(error.params["retry_after"])
    if error.code is E.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body_of(error, locale), status_code=status or error.http_status, headers=headers)


def body_of(error: OpstageError, locale: str) -> dict[str, Any]:
    """The one error shape; what it has nothing to say about is left out."""
    body = error.body(locale).to_wire()
    body["error"] = {name: value for name, value in body["error"].items() if value is not None}
    return body


def outage(error: BaseException) -> OpstageError | None:
    """``unavailable`` for an error that only says a database was not there just now; None for any other."""
    if isinstance(error, Transient):
        return error
    if is_db_error(error) and classify_db_error(error).is_transient:
        return Transient(E.UNAVAILABLE, {"what": "database"})
    return None


def path_of(scope: Scope) -> str:
    """The path as it was sent, fit for one line of a log; without the query, where people put all kinds of things."""
    raw: bytes = scope.get("raw_path") or b"-"
    return raw[:200].decode("ascii", "replace")


def unexpected(connection: HTTPConnection, error: Exception) -> JSONResponse:
    """What a client is told of an error nobody raised on purpose: 503 for an outage, else 500, and nothing of the
    error's own words."""
    locale = locale_of(connection)
    away = outage(error)
    where = f"{connection.scope.get('method')} {path_of(connection.scope)}"
    if away is not None:
        log.warning("%s: %s (%s)", where, away, type(error).__name__)
        return error_response(away, locale)
    log.error("unexpected error in %s", where, exc_info=error)
    ours = {
        "zh": "Opstage 出现意外错误",
        "en": "Opstage made an unexpected error",
    }
    return error_response(OpstageError(E.UNAVAILABLE, text=ours), locale, status=500)


def install(app: FastAPI) -> None:
    """Register the handlers; what they leave is ``unexpected``'s."""

    @app.exception_handler(OpstageError)
    async def _ours(request: Request, error: OpstageError) -> JSONResponse:
        return error_response(error, locale_of(request))

    @app.exception_handler(BodyRefused)
    async def _body(request: Request, error: BodyRefused) -> JSONResponse:
        response = error_response(error.error, locale_of(request))
        if error.error.code is E.PAYLOAD_TOO_LARGE:
            response.headers["Connection"] = "close"  # the rest of it is not worth receiving
        return response

    @app.exception_handler(RequestValidationError)
    async def _shape(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(invalid(problems_of(map(_within, error.errors()))), locale_of(request))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        text = {
            "zh": f"{_HTTP_ZH.get(error.status_code, '请求不被接受')}（HTTP {error.status_code}）",
            "en": f"{_HTTP_EN.get(error.status_code, error.detail)} (HTTP {error.status_code})",
        }
        body = body_of(Refused(E.PAYLOAD_INVALID, text=text), locale_of(request))
        return JSONResponse(body, status_code=error.status_code, headers=error.headers)


def _within(complaint: Mapping[str, Any]) -> dict[str, Any]:
    """``complaint`` located without the leading "body" or "query"."""
    return {**complaint, "loc": [part for part in complaint["loc"] if part not in _PARTS]}
