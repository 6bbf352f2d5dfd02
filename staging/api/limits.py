"""How much one caller may ask: requests and streams of a credential, credentials that are none of an address."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

from fastapi import Request
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from staging.contracts.error import ErrorCode
from staging.domain.credential import Authenticator, Credential, token_hash
from staging.domain.errors import Refused
from staging.settings import Settings

_MOST_KNOWN = 10_000
_STREAM_AGAIN_S = 30
_IPV6_HOST_BITS = 64  # one household or server has them all


class Limits:
    """Counted in this process. Raises rate_limited, with the seconds after which to come again."""

    def __init__(self, settings: Settings) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._requests = parse(settings.rate_limit)
        self._failures = parse(settings.failed_credential_limit)
        self._most_streams = settings.streams_per_credential
        self._streams: Counter[str] = Counter()
        self._known: OrderedDict[str, None] = OrderedDict()

    def verify(self, authenticator: Authenticator, token: str, address: str) -> Credential:
        """``authenticator``'s answer. From an address that has brought too many credentials that are none, only those
        verified before are looked at: others there are not locked out, and nobody is asked about guesses."""
        key = token_hash(token)
        if key not in self._known and not self._limiter.test(self._failures, address):
            raise self._too_many(self._failures, address)
        try:
            verified = authenticator.authenticate(token)
        except Refused as error:
            self._known.pop(key, None)
            if error.code is ErrorCode.UNAUTHENTICATED:
                self._limiter.hit(self._failures, address)
            raise
        self._known[key] = None
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return verified

    def request(self, token_id: str) -> None:
        """Count a request of this credential."""
        if not self._limiter.hit(self._requests, token_id):
            raise self._too_many(self._requests, token_id)

    def require_stream(self, token_id: str) -> None:
        """Raise if this credential has all the streams it may have."""
        if self._streams[token_id] >= self._most_streams:
            most = self._most_streams
            text = {
                "zh": f"同一凭证最多同时打开 {most} 个事件流",
                "en": f"A credential may have {most} streams open at a time",
            }
            raise Refused(ErrorCode.RATE_LIMITED, {"retry_after": _STREAM_AGAIN_S}, text=text)

    @contextmanager
    def stream(self, token_id: str) -> Iterator[None]:
        """Count a stream while it is open."""
        self._streams[token_id] += 1
        try:
            yield
        finally:
            self._streams[token_id] -= 1
            if not self._streams[token_id]:
                del self._streams[token_id]

    def _too_many(self, item: RateLimitItem, key: str) -> Refused:
        left_s = self._limiter.get_window_stats(item, key).reset_time - time.time()
        return Refused(ErrorCode.RATE_LIMITED, {"retry_after": max(1, round(left_s))})


def address_of(request: Request) -> str:
    """The client's address; of an IPv6 one the network. Behind a proxy that is what uvicorn makes of its headers
    (``FORWARDED_ALLOW_IPS``)."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(int(address) >> _IPV6_HOST_BITS) if isinstance(address, IPv6Address) else host
