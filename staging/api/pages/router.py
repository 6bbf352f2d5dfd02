"""Pages and the session cookie behind them. The page itself speaks the same HTTP API as everybody else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape

from staging.api.body import StrictRoute
from staging.api.context import SESSION_COOKIE, same_origin
from staging.api.locale import LOCALE_COOKIE, asked_locale
from staging.api.pages.texts import texts
from staging.contracts.error import ErrorCode, Wire
from staging.domain.credential import Authenticator
from staging.domain.errors import Refused
from staging.domain.identity import ActorKind

HERE = Path(__file__).parent
STATIC = HERE / "static"
router = APIRouter(route_class=StrictRoute, include_in_schema=False)
_templates = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True), auto_reload=False
)
_SESSION_S = 8 * 3600
_ON_THE_PAGE = (ActorKind.PERSON, ActorKind.OPERATOR)


class SignIn(Wire):
    """The token travels in a body, never in an address."""

    token: str


@router.get("/", response_class=HTMLResponse)
def todos_page(request: Request) -> HTMLResponse:
    """My AI todos."""
    return _page(request, "todos.html")


@router.get("/queue", response_class=HTMLResponse)
def queue_page(request: Request) -> HTMLResponse:
    """The operators' view of the whole queue."""
    return _page(request, "queue.html")


@router.post("/session", status_code=204)
def sign_in(request: Request, body: Annotated[SignIn, Body()]) -> Response:
    """Verify a person's or operator's token and keep it in a cookie that scripts cannot read."""
    same_origin(request)
    authenticator: Authenticator = request.app.state.authenticator
    credential = authenticator.authenticate(body.token)
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
    """Remember the language; ``to`` is one of our own pages."""
    response = RedirectResponse("/queue" if to == "/queue" else "/", status_code=303)
    response.set_cookie(LOCALE_COOKIE, "en" if locale == "en" else "zh", max_age=31_536_000, samesite="lax")
    return response


def _page(request: Request, template: str) -> HTMLResponse:
    locale = asked_locale(request) or "zh"
    words = texts(locale)
    html = _templates.get_template(template).render(t=words, locale=locale, path=request.url.path)
    return HTMLResponse(html, headers={"Cache-Control": "no-store"})
