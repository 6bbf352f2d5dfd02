"""``OPSTAGE_AUTH=introspect``: the ERP says who a token is. Its whoami gets the bearer token and answers JSON
with ``active``, ``user``, ``brands``, ``subsidiary``, ``kind`` and optionally ``exp`` (Unix seconds) and ``locale``."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import httpx

from staging.api.auth.claims import credential_from
from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential, token_hash
from staging.domain.errors import Refused, Transient
from staging.settings import Settings

_MAX_CACHED = 10_000


class IntrospectAuthenticator:
    """Answers are kept ``introspect_cache_s`` (at most 30 s) under the token's hash; refusals are not kept."""

    def __init__(self, settings: Settings) -> None:
        if not settings.introspect_url:
            raise ValueError("auth=introspect needs OPSTAGE_INTROSPECT_URL")
        self._url, self._cache_s = settings.introspect_url, settings.introspect_cache_s
        self._client = httpx.Client(timeout=3.0)
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[float, Credential]] = {}

    def authenticate(self, token: str) -> Credential:
        key = token_hash(token)
        with self._lock:
            cached = self._cache.get(key)
        now = datetime.now(UTC)
        if (
            cached
            and cached[0] > time.monotonic()
            and (cached[1].expires_at is None or cached[1].expires_at > now)
        ):
            return cached[1]
        credential = self._ask(token)
        with self._lock:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = (time.monotonic() + self._cache_s, credential)
        return credential

    def _ask(self, token: str) -> Credential:
        try:
            response = self._client.get(self._url, headers={"Authorization": f"Bearer {token}"})
        except httpx.InvalidURL as error:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "whoami"}) from error
        except httpx.HTTPError as error:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "whoami"}) from error
        if response.status_code in (401, 403, 404):
            raise Refused(ErrorCode.UNAUTHENTICATED)
        try:
            claims = response.json() if response.status_code == httpx.codes.OK else None
        except ValueError:
            claims = None
        if not isinstance(claims, dict):
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "whoami"})
        exp = claims.get("exp")
        if claims.get("active") is not True or not (exp is None or isinstance(exp, int)):
            raise Refused(ErrorCode.UNAUTHENTICATED)
        return credential_from(claims, token, None if exp is None else datetime.fromtimestamp(exp, UTC))
