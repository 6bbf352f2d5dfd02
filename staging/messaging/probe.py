"""What a Redis or Valkey server is and how it is set up, as facts. Reads only; what they mean is
``services.doctor``'s to say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
from redis.retry import Retry

REPLY_S = 2.0
_CLOCK_SAMPLES = 3
_CONFIG_NAMES = ("appendonly", "bind", "dir", "protected-mode", "save")
_KNOWN_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """``info``: INFO as a flat map, empty where we may not ask; ``config``: a few of CONFIG GET, empty likewise.

    ``open_to_all``: it serves whoever connects, without a password. ``clock_offset_s``: how far its clock is ahead of
    this host's.
    """

    product: str
    version: tuple[int, ...]
    info: Mapping[str, Any]
    config: Mapping[str, str]
    open_to_all: bool
    clock_offset_s: float | None

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version)) or "?"


def address(url: str) -> str:
    """``url`` fit for showing: no user, no password, no query. Of several (Sentinels), each."""
    each = [urlsplit(one) for one in url.split(";")]
    return ";".join(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" for parts in each)


def passwords_of(url: str) -> set[str]:
    """Everything in ``url`` that must not be shown, as it stands there and as the server gets it."""
    if ";" in url:
        return set().union(*map(passwords_of, url.split(";")))
    parts = urlsplit(url)
    written = parts.netloc.rpartition("@")[0].partition(":")[2]
    asked = parse_qs(parts.query)
    secrets = {written, *asked.get("password", []), *asked.get("ssl_password", [])}
    if parts.scheme in _KNOWN_SCHEMES:
        secrets.add(str(redis.ConnectionPool.from_url(url).connection_kwargs.get("password") or ""))
    return secrets - {""}


def same_server(one: str, other: str) -> bool:
    """True where both URLs lead to one Redis server, whatever the database number and the password."""
    return bool(redis_url_of_broker(other)) and _place(one) == _place(other)


def _place(url: str) -> str:
    """Host and port, or the socket's path."""
    parts = urlsplit(url)
    socket_path = parts.path if parts.scheme in ("unix", "redis+socket") else ""
    return parts.netloc.rpartition("@")[2] + socket_path


def redis_url_of_broker(url: str) -> str:
    """The broker's URL as redis-py spells it; "" where the broker is not one Redis server."""
    scheme = urlsplit(url).scheme
    if scheme == "redis+socket":
        database = parse_qs(urlsplit(url).query).get("virtual_host", ["0"])[0]
        return f"unix://{urlsplit(url).netloc}{urlsplit(url).path}?db={database}"
    return url if scheme in _KNOWN_SCHEMES else ""


def redis_facts(url: str) -> RedisFacts:
    """Connect and look. Each reply is awaited for ``REPLY_S`` seconds at most, and the first one lost ends it.

    Raises RedisError (AuthenticationError where the password is refused) or ValueError for a URL nobody can use.
    """
    client = redis.Redis.from_url(url, **_impatient())
    try:
        client.ping()
        info = _allowed(client.info) or {}
        config: dict[str, str] = {}
        for name in _CONFIG_NAMES:
            config |= _allowed(lambda name=name: client.config_get(name)) or {}  # type: ignore[misc]
        valkey = info.get("valkey_version")
        version = str(valkey or info.get("redis_version", ""))
        return RedisFacts(
            product="Valkey" if valkey else "Redis",
            version=tuple(int(part) for part in version.split(".") if part.isdigit()),
            info=info,
            config=config,
            open_to_all=_serves_anyone(url),
            clock_offset_s=_allowed(lambda: _clock_offset_s(client)),
        )
    finally:
        client.close()


def _impatient() -> dict[str, Any]:
    return {
        "socket_timeout": REPLY_S,
        "socket_connect_timeout": REPLY_S,
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": True,
    }


def _allowed(ask: Callable[[], Any]) -> Any:
    """The answer, or None where this user may not ask or the server does not know the question (managed Redis)."""
    try:
        return ask()
    except (NoPermissionError, ResponseError):
        return None


def _serves_anyone(url: str) -> bool:
    pool = redis.ConnectionPool.from_url(url, **_impatient())
    pool.connection_kwargs.pop("username", None)
    pool.connection_kwargs.pop("password", None)
    client = redis.Redis(connection_pool=pool)
    try:
        return bool(client.ping())
    except (AuthenticationError, ResponseError):
        return False  # it wants a password (NOAUTH), or lets nobody in without one (DENIED)
    except redis.exceptions.ConnectionError:
        return False  # protected mode hangs up on strangers
    finally:
        client.close()
        pool.disconnect()


def _clock_offset_s(client: redis.Redis) -> float:
    """Server's clock minus ours, from the quickest of a few readings."""
    best = (float("inf"), 0.0)
    for _ in range(_CLOCK_SAMPLES):
        sent, started = time.time(), time.monotonic()
        seconds, microseconds = client.time()
        took = time.monotonic() - started
        best = min(best, (took, seconds + microseconds / 1e6 - sent - took / 2))
    return best[1]
