"""Every refusal leaves by the one error shape, in the caller's language."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from staging.api.body import BodyRefused
from staging.api.locale import locale_of
from staging.contracts.error import ErrorCode as E, ErrorResponse
from staging.domain.errors import FieldProblem, OpstageError, Refused, invalid

log = logging.getLogger(__name__)

# What clients may meet anywhere; listed in OpenAPI for every call.
RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorResponse, "description": text}
    for code, text in {
        400: "not valid JSON",
        401: "no valid credential",
        403: "not permitted",
        404: "not found, or not yours",
        409: "state, version or idempotency conflict",
        410: "expired",
        413: "too large",
        422: "not valid for the form, or refused by a rule",
        429: "too many requests",
        503: "a service cannot be reached",
    }.items()
}
_BY_STATUS = {400: E.PAYLOAD_INVALID, 404: E.OPERATION_NOT_FOUND, 413: E.PAYLOAD_TOO_LARGE}


def error_response(error: OpstageError, locale: str) -> JSONResponse:
    """The error as HTTP. ``Retry-After`` where the error knows a number of seconds."""
    headers = {}
    if "retry_after" in error.params:
        headers["Retry-After"] = str(error.params["retry_after"])
    if error.code is E.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error.body(locale).to_wire(), status_code=error.http_status, headers=headers)


def install(app: FastAPI) -> None:
    """Register the handlers."""

    @app.exception_handler(OpstageError)
    async def _ours(request: Request, error: OpstageError) -> JSONResponse:
        return error_response(error, locale_of(request))

    @app.exception_handler(BodyRefused)
    async def _body(request: Request, error: BodyRefused) -> JSONResponse:
        return error_response(error.error, locale_of(request))

    @app.exception_handler(RequestValidationError)
    async def _shape(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(invalid([_problem(e) for e in error.errors()]), locale_of(request))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = _BY_STATUS.get(error.status_code, E.PAYLOAD_INVALID)
        text = {
            "zh": f"请求不被接受（HTTP {error.status_code}）",
            "en": f"HTTP {error.status_code}: {error.detail}",
        }
        body = Refused(code, text=text).body(locale_of(request))
        return JSONResponse(body.to_wire(), status_code=error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def _bug(request: Request, error: Exception) -> JSONResponse:
        log.error("unexpected error in %s %s", request.method, request.url.path, exc_info=error)
        return error_response(OpstageError(E.UNAVAILABLE, {"what": "API"}), locale_of(request))


def _problem(entry: dict[str, Any]) -> FieldProblem:
    """One pydantic complaint as a bad field; the path without the leading "body"/"query"."""
    location = [part for part in entry["loc"] if part not in ("body", "query", "path")]
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location).lstrip(".") or "body"
    kind = str(entry["type"])
    code = {"missing": E.FIELD_REQUIRED, "extra_forbidden": E.FIELD_UNKNOWN}.get(kind, E.FIELD_INVALID)
    reason = None if code is not E.FIELD_INVALID else {"zh": f"值不合法（{kind}）", "en": str(entry["msg"])}
    return FieldProblem(path, code, reason)
