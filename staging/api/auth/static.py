"""``OPSTAGE_AUTH=static``: a JSON file of hashed tokens, for the demo and CI. ``opstage token issue`` appends to it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential, token_hash
from staging.domain.errors import Refused, Transient
from staging.domain.identity import Actor, ActorKind, Tenant

_PREFIX = "ops_"
ISSUABLE = (ActorKind.AGENT, ActorKind.PERSON, ActorKind.SERVICE, ActorKind.OPERATOR)


class StoredToken(BaseModel):
    """One entry of the file; the token itself is never stored."""

    model_config = ConfigDict(extra="forbid")

    sha256: str
    user: str
    brands: str
    subsidiary: str
    kind: ActorKind
    expires_at: datetime
    locale: str = "zh"


@dataclass
class StaticAuthenticator:
    """Re-reads the file when it has changed, so that a revoked (removed) token stops working at once."""

    path: Path
    asks_nobody = True

    def __post_init__(self) -> None:
        # One value, replaced at once: threads that read an older and a newer file must not mix stamp and tokens.
        self._known: tuple[tuple[int, int] | None, dict[str, StoredToken]] = (None, {})

    def authenticate(self, token: str) -> Credential:
        key = token_hash(token)
        stored = self._load().get(key)
        if stored is None or stored.kind not in ISSUABLE or stored.expires_at <= datetime.now(UTC):
            raise Refused(ErrorCode.UNAUTHENTICATED)
        actor = Actor(Tenant(stored.brands, stored.subsidiary), stored.user, stored.kind, stored.locale)
        return Credential(actor, key[:16], stored.expires_at)

    def _load(self) -> dict[str, StoredToken]:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return {}
        stamp = (stat.st_mtime_ns, stat.st_size)
        known, tokens = self._known
        if stamp != known:
            tokens = {t.sha256: t for t in read_tokens(self.path)}
            self._known = (stamp, tokens)
        return tokens


def read_tokens(path: Path) -> list[StoredToken]:
    """All entries; raises ``unavailable`` for a file that is not what we wrote."""
    try:
        return [StoredToken.model_validate(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (ValueError, ValidationError) as error:
        raise Transient(ErrorCode.UNAVAILABLE, {"what": f"token file {path}"}) from error


def issue_token(
    path: Path, *, user: str, brands: str, subsidiary: str, kind: ActorKind, ttl_s: float, locale: str = "zh"
) -> str:
    """Make a token, store its hash (file mode 0600, replaced atomically, expired entries dropped), return the token."""
    token = _PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    entry = StoredToken(
        sha256=token_hash(token),
        user=user,
        brands=brands,
        subsidiary=subsidiary,
        kind=kind,
        expires_at=now + timedelta(seconds=ttl_s),
        locale=locale,
    )
    with _locked(path):
        kept = [t for t in read_tokens(path) if t.expires_at > now] + [entry]
        temporary = path.with_suffix(".new")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump([t.model_dump(mode="json") for t in kept], file, indent=1)
        temporary.replace(path)
    return token


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
