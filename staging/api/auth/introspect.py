"""``OPSTAGE_AUTH=introspect``: the ERP says who a token is. Its whoami gets the bearer token and answers JSON
with ``active``, ``user``, ``brands``, ``subsidiary``, ``kind`` and optionally ``exp`` (Unix seconds) and ``locale``."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import UTC, datetime

import httpx

from staging.api.auth.claims import credential_from, moment
from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential, token_hash
from staging.domain.errors import Refused, Transient
from staging.settings import Settings

log = logging.getLogger(__name__)
_MAX_CACHED = 10_000
_MAX_ANSWER = 65_536
_ANSWER_S = 3.0


class IntrospectAuthenticator:
    """Answers are kept ``introspect_cache_s`` (at most 30 s) under the token's hash; refusals are not kept."""

    asks_nobody = False

    def __init__(self, settings: Settings) -> None:
        if not settings.introspect_url:
            raise ValueError("auth=introspect needs OPSTAGE_INTROSPECT_URL")
        self._url, self._cache_s = settings.introspect_url, settings.introspect_cache_s
        self._client = httpx.Client(timeout=_ANSWER_S)
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[float, Credential]] = {}

    def authenticate(self, token: str) -> Credential:
        key = token_hash(token)
        with self._lock:
            until, cached = self._cache.get(key, (0.0, None))
        if cached is not None and until > time.monotonic() and not _has_ended(cached):
            return cached
        asked_at = (
            time.monotonic()
        )  # what was asked before a revocation must not outlive it by more than the limit
        credential = self._ask(token)
        with self._lock:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = (asked_at + self._cache_s, credential)
        return credential

    def _ask(self, token: str) -> Credential:
        try:
            status, body = self._answer(token)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _away(type(error).__name__) from error
        if status in (401, 403, 404):
            raise Refused(ErrorCode.UNAUTHENTICATED)
        if status != httpx.codes.OK:
            raise _away(f"HTTP {status}")
        try:
            claims = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _away("an answer that is not JSON") from error
        if not isinstance(claims, dict):
            raise _away("an answer that is no object")
        if claims.get("active") is not True:
            raise Refused(ErrorCode.UNAUTHENTICATED)
        return credential_from(claims, token, None if claims.get("exp") is None else moment(claims["exp"]))

    def _answer(self, token: str) -> tuple[int, bytes]:
        """Status and body, in bounded time and size whatever comes."""
        deadline = time.monotonic() + _ANSWER_S
        body = b""
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        with self._client.stream("GET", self._url, headers=headers) as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > _MAX_ANSWER or time.monotonic() > deadline:
                    raise _away("an answer without end")
            return response.status_code, body


def _has_ended(credential: Credential) -> bool:
    return credential.expires_at is not None and credential.expires_at <= datetime.now(UTC)


def _away(why: str) -> Transient:
    log.warning("whoami cannot be used: %s", why)
    return Transient(ErrorCode.UNAVAILABLE, {"what": "whoami"})
