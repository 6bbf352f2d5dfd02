"""``OPSTAGE_AUTH=jwt``: bearer tokens signed by an issuer whose public keys are at a JWKS address.

Asymmetric algorithms only (RS/ES): a shared secret would let whoever verifies also issue. Required claims:
``iss``, ``aud``, ``exp``, ``sub`` (user), ``brands``, ``subsidiary``, ``kind``.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from staging.api.auth.claims import credential_from
from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential
from staging.domain.errors import Refused, Transient
from staging.settings import Settings

_ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
_KEYS_FRESH_S = 300.0
_RELOAD_AT_MOST_EVERY_S = 10.0


class JwtAuthenticator:
    """Keys are cached; an unknown key id reloads them once, at most every ten seconds."""

    def __init__(self, settings: Settings) -> None:
        if not (settings.jwt_jwks_url and settings.jwt_issuer and settings.jwt_audience):
            raise ValueError(
                "auth=jwt needs OPSTAGE_JWT_JWKS_URL, OPSTAGE_JWT_ISSUER and OPSTAGE_JWT_AUDIENCE"
            )
        self._url = settings.jwt_jwks_url
        self._claims = JWTClaimsRegistry(
            leeway=0,
            iss={"essential": True, "value": settings.jwt_issuer},
            aud={"essential": True, "value": settings.jwt_audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._loaded_at = 0.0

    def authenticate(self, token: str) -> Credential:
        try:
            decoded = self._decode(token)
            self._claims.validate(decoded)
        except (JoseError, ValueError) as error:
            raise Refused(ErrorCode.UNAUTHENTICATED) from error
        expires_at = datetime.fromtimestamp(int(str(decoded["exp"])), UTC)
        return credential_from({**decoded, "user": decoded["sub"]}, token, expires_at)

    def _decode(self, token: str) -> dict[str, object]:
        try:
            return dict(jwt.decode(token, self._key_set(_KEYS_FRESH_S), algorithms=_ALGORITHMS).claims)
        except (JoseError, ValueError):
            # A key may have been rotated in since the last look.
            return dict(
                jwt.decode(token, self._key_set(_RELOAD_AT_MOST_EVERY_S), algorithms=_ALGORITHMS).claims
            )

    def _key_set(self, fresh_s: float) -> KeySet:
        with self._lock:
            if self._keys is None or time.monotonic() - self._loaded_at > fresh_s:
                try:
                    response = httpx.get(self._url, timeout=3.0)
                    response.raise_for_status()
                    self._keys = KeySet.import_key_set(response.json())
                except (httpx.HTTPError, JoseError, ValueError) as error:
                    raise Transient(ErrorCode.UNAVAILABLE, {"what": "JWKS"}) from error
                self._loaded_at = time.monotonic()
            return self._keys
