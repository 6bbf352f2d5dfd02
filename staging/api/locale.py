"""Which language to answer in: the page's switch (cookie), then Accept-Language, then the credential's, then
the installation's."""

from __future__ import annotations

from babel import negotiate_locale
from starlette.requests import HTTPConnection

LOCALE_COOKIE = "opstage_locale"
_KNOWN = ["zh", "en"]


def asked_locale(request: HTTPConnection) -> str | None:
    """The language the request itself asks for, or None."""
    chosen = request.cookies.get(LOCALE_COOKIE)
    if chosen in _KNOWN:
        return chosen
    header = request.headers.get("accept-language", "")[:200]
    wanted = [part.split(";")[0].strip().replace("-", "_") for part in header.split(",") if part.strip()]
    return negotiate_locale(wanted, _KNOWN, sep="_") if wanted else None


def locale_of(request: HTTPConnection) -> str:
    """The language to answer this request in."""
    credential = getattr(request.state, "credential", None)
    fallback: str = credential.actor.locale if credential else request.app.state.settings.locale
    return asked_locale(request) or fallback
