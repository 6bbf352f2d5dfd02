"""What every handler gets: the services, the verified caller, and the limits on what a caller may ask."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItem
from limits.strategies import MovingWindowRateLimiter

from staging.api.locale import asked_locale
from staging.bootstrap import Services
from staging.contracts.error import ErrorCode
from staging.domain.credential import Authenticator, Credential
from staging.domain.errors import Refused
from staging.domain.identity import Actor

SESSION_COOKIE = "opstage_session"
_MAX_TOKEN = 8192
_bearer = HTTPBearer(auto_error=False, description="agent, person, service or operator credential")


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def credential(
    request: Request, sent: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Credential:
    """The verified credential of the request. Raises unauthenticated, unavailable or rate_limited.

    The page keeps its token in an HttpOnly cookie; changing calls with a cookie must prove to come from the page itself
    (``same_origin``), a header token needs no such proof because no other site can send it.
    """
    token = sent.credentials if sent else request.cookies.get(SESSION_COOKIE, "")
    if not token or len(token) > _MAX_TOKEN or not token.isascii():
        raise Refused(ErrorCode.UNAUTHENTICATED)
    if sent is None and request.method not in ("GET", "HEAD"):
        same_origin(request)
    authenticator: Authenticator = request.app.state.authenticator
    verified = authenticator.authenticate(token)
    _limit(request, verified)
    verified = verified.speaking(asked_locale(request) or verified.actor.locale)
    request.state.credential = verified
    return verified


def same_origin(request: Request) -> None:
    """Raise forbidden unless Origin (or Sec-Fetch-Site) says that our own page sent this."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    host = request.headers.get("host", "")
    own = origin is not None and origin.split("://", 1)[-1] == host
    if not own or site not in (None, "same-origin"):
        raise Refused(ErrorCode.FORBIDDEN)


def _limit(request: Request, verified: Credential) -> None:
    limiter: MovingWindowRateLimiter = request.app.state.limiter
    item: RateLimitItem = request.app.state.rate
    if not limiter.hit(item, verified.token_id):
        raise Refused(
            ErrorCode.RATE_LIMITED, {"retry_after": max(1, item.get_expiry() // max(1, item.amount))}
        )


def actor(verified: Annotated[Credential, Depends(credential)]) -> Actor:
    return verified.actor


ServicesDep = Annotated[Services, Depends(services)]
CredentialDep = Annotated[Credential, Depends(credential)]
ActorDep = Annotated[Actor, Depends(actor)]
