"""From claims (of a JWT or of a whoami answer) to a credential; anything missing or odd is unauthenticated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential, token_hash
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind, Tenant

_KINDS = {k.value: k for k in ActorKind if k is not ActorKind.SYSTEM}


def credential_from(claims: Mapping[str, object], token: str, expires_at: datetime | None) -> Credential:
    """``user``, ``brands``, ``subsidiary`` and ``kind`` are required non-empty strings; ``locale`` is optional."""
    values = [claims.get(name) for name in ("user", "brands", "subsidiary", "kind")]
    if not all(isinstance(v, str) and v.isprintable() and 0 < len(v) <= 64 for v in values):
        raise Refused(ErrorCode.UNAUTHENTICATED)
    user, brands, subsidiary, kind = (str(v) for v in values)
    if kind not in _KINDS or (expires_at is not None and expires_at <= datetime.now(UTC)):
        raise Refused(ErrorCode.UNAUTHENTICATED)
    locale = "en" if claims.get("locale") == "en" else "zh"
    actor = Actor(Tenant(brands, subsidiary), user, _KINDS[kind], locale)
    return Credential(actor, token_hash(token)[:16], expires_at)


def moment(seconds: object) -> datetime:
    """A NumericDate (Unix seconds) as aware UTC; unauthenticated for anything else."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise Refused(ErrorCode.UNAUTHENTICATED)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise Refused(ErrorCode.UNAUTHENTICATED) from None
