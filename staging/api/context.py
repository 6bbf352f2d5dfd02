"""What every handler gets: the services, the verified caller, and the limits on what a caller may ask."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from staging.api.body import StrictRoute
from staging.api.limits import Limits, address_of
from staging.api.locale import asked_locale
from staging.bootstrap import Services
from staging.contracts.error import ErrorCode
from staging.domain.credential import Authenticator, Credential
from staging.domain.errors import Refused
from staging.domain.identity import Actor

SESSION_COOKIE = "opstage_session"
_TOKEN = re.compile(r"[!-~]{1,8192}")
_SCHEME = "bearer "


class _Caller(HTTPBearer):
    """What GuardedRoute has left of the bearer token; for OpenAPI the scheme by which it comes."""

    def __init__(self) -> None:
        super().__init__(
            auto_error=False,
            scheme_name=HTTPBearer.__name__,
            description="agent, person, service or operator credential",
        )


class _Credential(_Caller):
    async def __call__(self, request: Request) -> Credential:  # type: ignore[override]
        found: Credential = request.state.credential
        return found


class _Actor(_Caller):
    async def __call__(self, request: Request) -> Actor:  # type: ignore[override]
        found: Credential = request.state.credential
        return found.actor


class GuardedRoute(StrictRoute):
    """A route that knows its caller before it reads anything else of the request."""

    async def admit(self, request: Request) -> None:
        """Leaves the verified ``Credential`` in ``request.state.credential``.

        Raises unauthenticated, rate_limited, forbidden (a cookie sent from somewhere else), or unavailable where the
        credential cannot be verified just now.
        """
        token = token_of(request)
        if authenticator_of(request).asks_nobody:
            verified = verify(request, token)
        else:
            verified = await run_in_threadpool(verify, request, token)
        limits_of(request).request(verified.token_id)
        request.state.credential = verified.speaking(asked_locale(request) or verified.actor.locale)
        request.state.token = token


def token_of(request: Request) -> str:
    """The bearer token of the header, else of the page's cookie.

    The page keeps its token in an HttpOnly cookie; changing calls with a cookie must prove to come from the page itself
    (``same_origin``), a header token needs no such proof because no other site can send it.
    """
    header = request.headers.get("authorization")
    if header is not None:
        token = header[len(_SCHEME) :].strip() if header[: len(_SCHEME)].lower() == _SCHEME else ""
    else:
        token = request.cookies.get(SESSION_COOKIE, "")
        if token and request.method not in ("GET", "HEAD"):
            same_origin(request)
    if not _TOKEN.fullmatch(token):
        raise Refused(ErrorCode.UNAUTHENTICATED)
    return token


def same_origin(request: Request) -> None:
    """Raise forbidden unless Origin and Sec-Fetch-Site say that our own page sent this."""
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    host = request.headers.get("host", "")
    if not host or origin.partition("://")[2] != host or site != "same-origin":
        raise Refused(ErrorCode.FORBIDDEN)


def limits_of(request: Request) -> Limits:
    found: Limits = request.app.state.limits
    return found


def authenticator_of(request: Request) -> Authenticator:
    found: Authenticator = request.app.state.authenticator
    return found


def verify(request: Request, token: str) -> Credential:
    """The credential of ``token``, by whatever way ``OPSTAGE_AUTH`` names. Raises unauthenticated, rate_limited,
    unavailable."""
    return limits_of(request).verify(authenticator_of(request), token, address_of(request))


async def services(request: Request) -> Services:
    """A coroutine, though it waits for nothing: a plain function would be called in a thread."""
    found: Services = request.app.state.services
    return found


ServicesDep = Annotated[Services, Depends(services)]
CredentialDep = Annotated[Credential, Depends(_Credential())]
ActorDep = Annotated[Actor, Depends(_Actor())]
