"""A verified credential: whom it acts for, of which kind, until when."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from staging.domain.identity import Actor


@dataclass(frozen=True, slots=True)
class Credential:
    """``token_id``: a hash that names the token in limits and logs without being it. ``expires_at`` aware UTC
    or None."""

    actor: Actor
    token_id: str
    expires_at: datetime | None = None

    def speaking(self, locale: str) -> Credential:
        """The same credential, answered in ``locale``."""
        return replace(self, actor=replace(self.actor, locale=locale))


class Authenticator(Protocol):
    """Turns a bearer token into a credential. Anything not positively valid raises unauthenticated; a source
    that cannot be asked raises unavailable: never a guess (fail closed). ``asks_nobody``: it answers at once, without
    waiting for another server."""

    asks_nobody: bool

    def authenticate(self, token: str) -> Credential: ...


def token_hash(token: str) -> str:
    """SHA-256 in hex. Tokens carry 256 random bits (or a signature), so a plain fast hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
