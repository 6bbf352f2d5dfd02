"""How much one caller may ask: requests and streams of a credential, credentials that are none of an address."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

from fastapi import Request
from limits import parse

from staging.contracts.error import ErrorCode
from staging.domain.credential import Authenticator, Credential, token_hash
from staging.domain.errors import Refused
from staging.settings import Settings

_MOST_KNOWN = 10_000
_STREAM_AGAIN_S = 30
_IPV6_HOST_BITS = 64  # one household or server has them all


class Window:
    """At most so many hits of a key in any period: ``rate`` says "600/minute". Any thread may ask.

    Counted by hand: the library's memory starts a thread to forget by, a hundred times a second.
    """

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        limit, self._clock = parse(rate), clock
        self._most, self._period_s = limit.amount, limit.get_expiry()
        self._lock = threading.Lock()
        self._hits: dict[str, deque[float]] = {}
        self._forget_at = 0.0

    def has_room(self, key: str) -> bool:
        """True if ``hit`` would be."""
        with self._lock:
            return len(self._recent(key, self._clock())) < self._most

    def hit(self, key: str) -> bool:
        """Count one; False, and nothing counted, where there have been so many already."""
        with self._lock:
            now = self._clock()
            self._forget(now)
            recent = self._recent(key, now)
            if len(recent) >= self._most:
                return False
            recent.append(now)
            self._hits[key] = recent
            return True

    def room_in_s(self, key: str) -> float:
        """Seconds until the oldest hit of the key no longer counts."""
        with self._lock:
            now = self._clock()
            recent = self._recent(key, now)
            return recent[0] + self._period_s - now if recent else 0.0

    @property
    def keys(self) -> int:
        """How many keys are remembered."""
        return len(self._hits)

    def _recent(self, key: str, now: float) -> deque[float]:
        recent = self._hits.get(key, deque())
        while recent and recent[0] <= now - self._period_s:
            recent.popleft()
        return recent

    def _forget(self, now: float) -> None:
        """Once a period, the keys nobody has hit in it."""
        if now >= self._forget_at:
            since = now - self._period_s
            self._hits = {key: hits for key, hits in self._hits.items() if hits and hits[-1] > since}
            self._forget_at = now + self._period_s


class Limits:
    """Counted in this process. Raises rate_limited, with the seconds after which to come again."""

    def __init__(self, settings: Settings) -> None:
        self._requests = Window(settings.rate_limit)
        self._failures = Window(settings.failed_credential_limit)
        self._most_streams = settings.streams_per_credential
        self._streams: Counter[str] = Counter()
        self._known: OrderedDict[str, None] = OrderedDict()

    def verify(self, authenticator: Authenticator, token: str, address: str) -> Credential:
        """``authenticator``'s answer. From an address that has brought too many credentials that are none, only those
        verified before are looked at: others there are not locked out, and nobody is asked about guesses."""
        key = token_hash(token)
        if key not in self._known and not self._failures.has_room(address):
            raise _too_many(self._failures, address)
        try:
            verified = authenticator.authenticate(token)
        except Refused as error:
            self._known.pop(key, None)
            if error.code is ErrorCode.UNAUTHENTICATED:
                self._failures.hit(address)
            raise
        self._known[key] = None
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return verified

    def request(self, token_id: str) -> None:
        """Count a request of this credential."""
        if not self._requests.hit(token_id):
            raise _too_many(self._requests, token_id)

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


def _too_many(window: Window, key: str) -> Refused:
    return Refused(ErrorCode.RATE_LIMITED, {"retry_after": max(1, round(window.room_in_s(key)))})


def address_of(request: Request) -> str:
    """The client's address; of an IPv6 one the network. Behind a proxy that is what uvicorn makes of its headers
    (``FORWARDED_ALLOW_IPS``)."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(int(address) >> _IPV6_HOST_BITS) if isinstance(address, IPv6Address) else host
