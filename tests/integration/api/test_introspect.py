"""The ERP's whoami vouches for tokens: refused, revoked, slow, away, or talking nonsense, nobody gets in by mistake."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from migrations.run import upgrade
from staging.api.auth.introspect import IntrospectAuthenticator
from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError
from staging.domain.identity import ActorKind
from staging.settings import Settings
from tests.support.api import ApiProcess
from tests.support.issuers import Whoami, reply
from tests.support.waiting import wait_until


def authenticator(url: str, cache_s: float = 30.0) -> IntrospectAuthenticator:
    settings = Settings(_env_file=None, auth="introspect", introspect_url=url, introspect_cache_s=cache_s)
    return IntrospectAuthenticator(settings)


def refusal(asking: IntrospectAuthenticator, token: str) -> ErrorCode:
    with pytest.raises(OpstageError) as caught:
        asking.authenticate(token)
    return caught.value.code


@pytest.fixture
def whoami() -> Iterator[Whoami]:
    with Whoami() as server:
        yield server


def test_an_active_token_is_who_the_erp_says(whoami: Whoami) -> None:
    token = whoami.add("t-1", kind="service", user="erp", locale="en", exp=int(time.time()) + 60)
    credential = authenticator(whoami.url).authenticate(token)
    assert (credential.actor.user_id, credential.actor.kind) == ("erp", ActorKind.SERVICE)
    assert credential.expires_at is not None


REFUSED: dict[str, dict[str, Any]] = {
    "inactive": {"active": False},
    "active in words": {"active": "true"},
    "active as one": {"active": 1},
    "expired": {"exp": int(time.time()) - 1},
    "expiry as text": {"exp": "soon"},
    "expiry beyond time": {"exp": 1e300},
    "no user": {"user": None},
    "no tenant": {"brands": ""},
    "no subsidiary": {"subsidiary": 1},
    "no kind": {"kind": None},
    "the system's own kind": {"kind": "system"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_any_other_answer_is_a_refusal(name: str, whoami: Whoami) -> None:
    token = whoami.add("t-1", **REFUSED[name])
    assert refusal(authenticator(whoami.url), token) == ErrorCode.UNAUTHENTICATED


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_by_status(status: int, whoami: Whoami) -> None:
    whoami.answer = lambda handler, _: reply(handler, {"active": True}, status)
    assert refusal(authenticator(whoami.url), "t-1") == ErrorCode.UNAUTHENTICATED


def _drip(handler: BaseHTTPRequestHandler, _: str) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _second in range(60):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.2)


def _flood(handler: BaseHTTPRequestHandler, _: str) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _part in range(100_000):
        handler.wfile.write(b" " * 10_000)


def _sleep(handler: BaseHTTPRequestHandler, _: str) -> None:
    time.sleep(10)
    reply(handler, {"active": True})


def _redirect(handler: BaseHTTPRequestHandler, _: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:1/")
    handler.end_headers()


USELESS: dict[str, Callable[[BaseHTTPRequestHandler, str], None]] = {
    "an error": lambda handler, _: reply(handler, {"active": True}, 500),
    "too many requests": lambda handler, _: reply(handler, {"active": True}, 429),
    "no content": lambda handler, _: reply(handler, b"", 200),
    "html": lambda handler, _: reply(handler, b"<html>login</html>"),
    "a list": lambda handler, _: reply(handler, [{"active": True}]),
    "nested without end": lambda handler, _: reply(handler, b"[" * 60_000),
    "a redirect": _redirect,
    "byte by byte": _drip,
    "without end": _flood,
    "too late": _sleep,
}


@pytest.mark.parametrize("name", USELESS)
def test_an_answer_that_cannot_be_used_lets_nobody_in(name: str, whoami: Whoami) -> None:
    whoami.answer = USELESS[name]
    started = time.monotonic()
    assert refusal(authenticator(whoami.url), "t-1") == ErrorCode.UNAVAILABLE
    assert time.monotonic() - started < 6


def test_an_erp_that_is_away_lets_nobody_in() -> None:
    assert refusal(authenticator(Whoami().url), "t-1") == ErrorCode.UNAVAILABLE


def test_an_answer_is_kept_but_not_for_long(whoami: Whoami) -> None:
    token = whoami.add("t-1")
    asking = authenticator(whoami.url, cache_s=0.5)
    for _ in range(10):
        asking.authenticate(token)
    assert whoami.asked == 1
    whoami.users.clear()  # revoked
    wait_until(lambda: whoami.asked == 2 or _ask(asking, token), 5, "it asks again")
    assert refusal(asking, token) == ErrorCode.UNAUTHENTICATED


def _ask(asking: IntrospectAuthenticator, token: str) -> bool:
    try:
        asking.authenticate(token)
    except OpstageError:
        return True
    return False


def test_what_is_kept_ends_with_the_token(whoami: Whoami) -> None:
    token = whoami.add("t-1", exp=time.time() + 0.5)
    asking = authenticator(whoami.url)
    asking.authenticate(token)
    wait_until(lambda: _ask(asking, token), 3, "the token has ended")
    assert refusal(asking, token) == ErrorCode.UNAUTHENTICATED


def test_refusals_are_not_kept(whoami: Whoami) -> None:
    asking = authenticator(whoami.url)
    assert refusal(asking, "t-1") == ErrorCode.UNAUTHENTICATED
    whoami.add("t-1")
    assert asking.authenticate("t-1").actor.user_id == "u-lin"


def test_one_persons_answer_is_not_anothers(whoami: Whoami) -> None:
    asking = authenticator(whoami.url)
    one, other = whoami.add("t-1", user="u-lin"), whoami.add("t-2", user="u-chen")
    assert [asking.authenticate(t).actor.user_id for t in (one, other, one)] == ["u-lin", "u-chen", "u-lin"]


def test_keeping_for_longer_than_thirty_seconds_does_not_load() -> None:
    with pytest.raises(ValueError) as caught:
        Settings(_env_file=None, introspect_cache_s=31)
    assert "introspect_cache_s" in str(caught.value)


def test_over_http(sqlite_database: str, redis_url: str, whoami: Whoami, tmp_path: Path) -> None:
    upgrade(sqlite_database, "queue")
    env = {
        "OPSTAGE_DATABASE_URL": sqlite_database,
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_ERP_ADAPTER": "tests.support.effects_adapter:build_adapter",
        "OPSTAGE_AUTH": "introspect",
        "OPSTAGE_INTROSPECT_URL": whoami.url,
        "OPSTAGE_INTROSPECT_CACHE_S": "0.3",
    }
    agent, person = whoami.add("secret-agent-token", kind="agent"), whoami.add("secret-person-token")
    with ApiProcess(env, tmp_path) as api, httpx.Client(base_url=api.url, timeout=20) as http:

        def confirm(token: str) -> int:
            path = "/v1/preparations/none/confirm"
            return http.post(path, headers={"Authorization": f"Bearer {token}"}).status_code

        assert [confirm(t) for t in (agent, person, "unknown")] == [403, 404, 401]
        del whoami.users[person]
        wait_until(lambda: confirm(person) == 401, 5, "the revoked token is refused")
        whoami.stop()
        wait_until(lambda: confirm(agent) == 503, 5, "nobody vouches any more")
        assert http.get("/healthz").status_code == 200
        whoami.start()
        wait_until(lambda: confirm(agent) == 403, 5, "the ERP is back")
        assert "secret-" not in api.log()
