"""``OPSTAGE_AUTH=jwt``: bearer tokens signed by an issuer whose public keys are at a JWKS address.

Asymmetric algorithms only (RS/ES): a shared secret would let whoever verifies also issue. Required claims:
``iss``, ``aud``, ``exp``, ``sub`` (user), ``brands``, ``subsidiary``, ``kind``.
"""

from __future__ import annotations

import logging
import threading
import time

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from staging.api.auth.claims import credential_from, moment
from staging.contracts.error import ErrorCode
from staging.domain.credential import Credential
from staging.domain.errors import Refused, Transient
from staging.settings import Settings

log = logging.getLogger(__name__)
_ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
_AFTER_FAILURE_S = 2.0
_WAIT_S = 3.0


class JwtAuthenticator:
    """Keys are cached and looked at again every ``look_again_s``: a key that was taken back stops working about then.

    A token they do not verify has them loaded at once, at most every ``unknown_key_s``: they may have been rotated.
    Where the issuer has been away for ``keys_last_s``, tokens are refused as unavailable, not taken on trust.
    """

    asks_nobody = False

    def __init__(
        self,
        settings: Settings,
        *,
        look_again_s: float = 60.0,
        unknown_key_s: float = 10.0,
        keys_last_s: float = 300.0,
    ) -> None:
        if not (settings.jwt_jwks_url and settings.jwt_issuer and settings.jwt_audience):
            raise ValueError(
                "auth=jwt needs OPSTAGE_JWT_JWKS_URL, OPSTAGE_JWT_ISSUER and OPSTAGE_JWT_AUDIENCE"
            )
        self._url = settings.jwt_jwks_url
        self._look_again_s, self._unknown_key_s, self._keys_last_s = look_again_s, unknown_key_s, keys_last_s
        self._claims = JWTClaimsRegistry(
            leeway=0,
            iss={"essential": True, "value": settings.jwt_issuer},
            aud={"essential": True, "value": settings.jwt_audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        self._loading = threading.Lock()
        self._keys: KeySet | None = None
        self._loaded_at = self._not_before = 0.0

    def authenticate(self, token: str) -> Credential:
        try:
            claims = self._decode(token)
            self._claims.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise Refused(ErrorCode.UNAUTHENTICATED) from error
        return credential_from({**claims, "user": claims["sub"]}, token, moment(claims["exp"]))

    def _decode(self, token: str) -> dict[str, object]:
        keys = self._key_set(self._look_again_s)
        try:
            return dict(jwt.decode(token, keys, algorithms=_ALGORITHMS).claims)
        except (JoseError, ValueError):
            fresh = self._key_set(self._unknown_key_s)
            if fresh is keys:
                raise
            return dict(jwt.decode(token, fresh, algorithms=_ALGORITHMS).claims)

    def _key_set(self, fresh_s: float) -> KeySet:
        """Keys, loaded anew where older than ``fresh_s``. Raises unavailable where there are none to be trusted."""
        now = time.monotonic()
        keys = self._keys
        if (keys is None or now - self._loaded_at > fresh_s) and now >= self._not_before:
            # One loads; the others go on with the keys there are, and wait only where there are none.
            if self._loading.acquire(blocking=keys is None):
                try:
                    if self._keys is keys:
                        self._load()
                finally:
                    self._loading.release()
            keys = self._keys
        if keys is None or time.monotonic() - self._loaded_at > self._keys_last_s:
            raise Transient(ErrorCode.UNAVAILABLE, {"what": "JWKS"})
        return keys

    def _load(self) -> None:
        try:
            response = httpx.get(self._url, timeout=_WAIT_S)
            response.raise_for_status()
            self._keys = KeySet.import_key_set(response.json())
            self._loaded_at = time.monotonic()
        except (httpx.HTTPError, httpx.InvalidURL, JoseError, ValueError, TypeError, KeyError) as error:
            log.warning("JWKS cannot be loaded: %s", type(error).__name__)
            self._not_before = time.monotonic() + _AFTER_FAILURE_S
