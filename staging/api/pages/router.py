"""Pages and the session cookie behind them. The page itself speaks the same HTTP API as everybody else."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from staging.api.body import StrictRoute
from staging.api.context import SESSION_COOKIE, same_origin, verify
from staging.api.locale import LOCALE_COOKIE
from staging.api.pages.rendering import HERE, page
from staging.contracts.error import ErrorCode, Wire
from staging.contracts.status import Status, StatusCode
from staging.domain.errors import Refused
from staging.domain.identity import ActorKind

router = APIRouter(route_class=StrictRoute, include_in_schema=False)
_SESSION_S = 8 * 3600
_YEAR_S = 31_536_000
_ON_THE_PAGE = (ActorKind.PERSON, ActorKind.OPERATOR)
_OWN_PAGE = re.compile(r"/(queue|form/[\w-]{1,64})?(\?[\w=&%.~-]{0,200})?\Z", re.ASCII)


class SignIn(Wire):
    """The token travels in a body, never in an address."""

    token: str


class FreshFiles(StaticFiles):
    """Scripts and styles of one release belong together: a browser asks each time, and is told 304."""

    def file_response(self, *args: Any, **kw: Any) -> Response:
        response = super().file_response(*args, **kw)
        response.headers["Cache-Control"] = "no-cache"
        return response


def static_files() -> FreshFiles:
    return FreshFiles(directory=HERE / "static")


@router.get("/", response_class=HTMLResponse)
def todos_page(request: Request, preparation: str = "") -> HTMLResponse:
    """My AI todos; with ``preparation`` (an id) that one's card is open. The script reads it from the address."""
    del preparation
    return page(request, "todos.html")


@router.get("/queue", response_class=HTMLResponse)
def queue_page(request: Request) -> HTMLResponse:
    """The whole queue for operators, all of one's own operations for a person."""
    return page(request, "queue.html", statuses=list(Status), codes=list(StatusCode))


@router.get("/favicon.ico", response_class=FileResponse)
def icon() -> FileResponse:
    """For browsers that ask for it by this name."""
    return FileResponse(HERE / "static" / "icon.svg", media_type="image/svg+xml")


@router.post("/session", status_code=204)
def sign_in(request: Request, body: Annotated[SignIn, Body()]) -> Response:
    """Verify a person's or operator's token and keep it in a cookie that scripts cannot read."""
    same_origin(request)
    credential = verify(request, body.token)
    if credential.actor.kind not in _ON_THE_PAGE:
        raise Refused(ErrorCode.FORBIDDEN)
    left_s = _SESSION_S
    if credential.expires_at is not None:
        left_s = min(left_s, int((credential.expires_at - datetime.now(UTC)).total_seconds()))
    response = Response(status_code=204)
    response.set_cookie(
        SESSION_COOKIE,
        body.token,
        max_age=max(1, left_s),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.delete("/session", status_code=204)
def sign_out(request: Request) -> Response:
    """Forget the cookie."""
    same_origin(request)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE)
    return response


@router.get("/locale/{locale}")
def switch_locale(locale: str, to: str = "/") -> RedirectResponse:
    """Remember the language and go on to ``to``, which is one of our own pages."""
    response = RedirectResponse(to if _OWN_PAGE.match(to) else "/", status_code=303)
    response.set_cookie(LOCALE_COOKIE, "en" if locale == "en" else "zh", max_age=_YEAR_S, samesite="lax")
    return response
