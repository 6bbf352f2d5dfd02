"""Whatever is asked, however it goes wrong: one error shape, security headers, bounded use, honest health."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from migrations.run import upgrade
from staging.api.auth.static import issue_token
from staging.contracts.error import ErrorCode, ErrorResponse
from staging.domain.identity import ActorKind
from tests.support.api import AGENT, OPERATOR, PERSON, ApiProcess, Door
from tests.support.demo_requests import new_customer
from tests.support.private import EmbeddedPostgres, EmbeddedRedis
from tests.support.queue_rows import foreign_insert
from tests.support.sse import Listener
from tests.support.waiting import wait_until

Started = tuple[ApiProcess, httpx.Client]
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.fixture
def start(sqlite_database: str, redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """``start(rate_limit="5/minute", …)`` → an API over an empty queue and the effects ERP, and a person's client."""
    with ExitStack() as stack:

        def begin(**settings: str) -> Started:
            env = {
                "OPSTAGE_DATABASE_URL": sqlite_database,
                "OPSTAGE_REDIS_URL": redis_url,
                "OPSTAGE_DATA_DIR": str(tmp_path),
                "OPSTAGE_ERP_ADAPTER": "tests.support.effects_adapter:build_adapter",
                **{f"OPSTAGE_{name.upper()}": value for name, value in settings.items()},
            }
            upgrade(env["OPSTAGE_DATABASE_URL"], "queue")
            api = stack.enter_context(ApiProcess(env, tmp_path))
            return api, stack.enter_context(client(api, tmp_path))

        yield begin


def client(api: ApiProcess, folder: Path, kind: ActorKind = PERSON, user: str = "u-lin") -> httpx.Client:
    token = issue_token(
        folder / "tokens.json", user=user, brands="B001", subsidiary="S01", kind=kind, ttl_s=600
    )
    headers = {"Authorization": f"Bearer {token}", "Accept-Language": "en"}
    return httpx.Client(base_url=api.url, headers=headers, timeout=30)


def assert_shape(answer: httpx.Response) -> dict[str, Any]:
    """The one error shape and nothing beside it."""
    assert answer.headers["content-type"] == "application/json"
    ErrorResponse.model_validate_json(answer.content)
    body: dict[str, Any] = answer.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() >= {"code", "message", "hint"}
    assert body["error"]["code"] in set(ErrorCode)
    for name, value in _HEADERS.items():
        assert answer.headers[name] == value
    return dict(body["error"])


WRONG: dict[str, tuple[str, str, int]] = {
    "no such path": ("GET", "/nope", 404),
    "no such path below v1": ("GET", "/v1/nope", 404),
    "a slash too many": ("GET", "/v1/todos/", 404),
    "path traversal": ("GET", "/v1/../../etc/passwd", 404),
    "static traversal": ("GET", "/static/..%2f..%2fapp.py", 404),
    "no such static file": ("GET", "/static/none.js", 404),
    "wrong method": ("PUT", "/v1/me", 405),
    "wrong method on an operation": ("PATCH", "/v1/operations/x", 405),
    "trace": ("TRACE", "/v1/me", 405),
    "static is read only": ("POST", "/static/page.css", 405),
    "bad parameter": ("GET", "/v1/todos?limit=x", 422),
    "parameter out of range": ("GET", "/v1/operations/x/status?wait=61", 422),
    "parameter not a number": ("GET", "/v1/operations/x/status?wait=nan", 422),
    "parameter beyond numbers": ("GET", "/v1/operations/x/status?wait=inf", 422),
    "seq beyond numbers": ("GET", "/v1/operations/x/status?after=" + "9" * 30, 422),
    "missing": ("GET", "/v1/operations/none", 404),
    "id of odd characters": ("GET", "/v1/operations/%00%0a%ff", 404),
    "id too long": ("GET", "/v1/operations/" + "x" * 5000, 404),
    "form of odd characters": ("GET", "/v1/forms/%F0%9F%98%80%00", 404),
    "no json": ("POST", "/v1/preparations", 422),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_refusal_has_the_one_shape(name: str, door: Door) -> None:
    method, path, status = WRONG[name]
    answer = door.as_("u-lin").http.request(method, path)
    assert answer.status_code == status, answer.text
    assert_shape(answer)


def test_a_method_that_is_not_taken_says_which_are(door: Door) -> None:
    assert door.as_("u-lin").http.put("/v1/me").headers["allow"] == "GET"


def test_security_headers_are_on_good_answers_too(door: Door) -> None:
    for path in ("/v1/me", "/healthz", "/openapi.json", "/", "/static/page.css"):
        answer = door.as_("u-lin").http.get(path)
        assert answer.status_code == 200
        for name, value in _HEADERS.items():
            assert answer.headers[name] == value
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
    assert door.as_("u-lin").http.get("/v1/me").headers["cache-control"] == "no-store"


def test_a_bug_of_ours_is_a_500_that_tells_nothing(start: Callable[..., Started]) -> None:
    """The effects ERP has no forms to list: a programming error, met for real."""
    api, http = start()
    answer = http.get("/v1/forms?q=secret-word")
    assert answer.status_code == 500
    error = assert_shape(answer)
    assert "Attribute" not in answer.text
    assert error["code"] == "unavailable"
    assert "AttributeError" in api.log()
    assert "secret-word" not in api.log()
    assert http.get("/healthz").status_code == 200


def test_what_foreign_rows_hold_is_shown_and_breaks_nothing(door: Door) -> None:
    """Text nobody validated: any answer that holds it must still be one."""
    payloads = {
        "lone surrogate": '{"a":"\\ud800"}',
        "nested deep": "[" * 900 + "]" * 900,
        "nested deeper": "[" * 20_000 + "]" * 20_000,
        "not json": "hello {",
        "a number": "12345678901234567890.10",
        "digits without end": '{"a":' + "9" * 6000 + "}",
        "a big integer": '{"a":9007199254740993}',
        "constants": '{"a":[true,false,null,NaN,-Infinity]}',
        "control characters": '{"a":"\\u0000\\u001b[31m"}',
        "html": '{"a":"<script>alert(1)</script>"}',
    }
    engine = door.services.databases.store.engine
    if engine.dialect.name == "postgresql":
        payloads.pop("control characters")  # it may not be there
    ids = {}
    for name, payload in payloads.items():
        with engine.begin() as connection:
            ids[name] = foreign_insert(connection, sTargetFormId="customer", sPayload=payload, bAutoExecute=0)
    person = door.as_("u-lin")
    shown = {name: person.get(f"/v1/operations/{op_id}")["payload"] for name, op_id in ids.items()}
    assert shown["a big integer"] == {"a": "9007199254740993"}
    assert shown["a number"] == "12345678901234567890.10"
    assert shown["digits without end"] == {"a": "9" * 6000}
    assert shown["constants"] == {"a": [True, False, None, "NaN", "-Infinity"]}
    assert shown["not json"] == "hello {"
    assert shown["nested deep"].startswith("[[[")
    listed = person.post("/v1/operations/query", {"page": {"size": 200}})["items"]
    assert set(ids.values()) <= {item["id"] for item in listed}
    assert door.as_("ops", OPERATOR).get("/v1/todos")


def test_too_many_requests_of_one_credential(start: Callable[..., Started], tmp_path: Path) -> None:
    api, http = start(rate_limit="5/minute")
    statuses = [http.get("/v1/todos").status_code for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    answer = http.get("/v1/todos")
    error = assert_shape(answer)
    assert error["code"] == "rate_limited"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    with client(api, tmp_path, user="u-chen") as another:
        assert another.get("/v1/todos").status_code == 200
    assert http.get("/healthz").status_code == 200


def test_too_many_credentials_that_are_none_from_one_address(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    api, http = start(failed_credential_limit="5/minute")
    assert http.get("/v1/todos").status_code == 200

    def guess(path: str = "/v1/todos", **how: Any) -> httpx.Response:
        return httpx.request("GET", api.url + path, headers={"Authorization": "Bearer guess"}, **how)

    assert [guess().status_code for _ in range(7)] == [401] * 5 + [429] * 2
    answer = guess()
    assert assert_shape(answer)["code"] == "rate_limited"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    origin = {"Origin": api.url, "Sec-Fetch-Site": "same-origin"}
    assert httpx.post(f"{api.url}/session", json={"token": "guess"}, headers=origin).status_code == 429
    # whoever had been let in before stays in; no credential at all is no guess
    assert http.get("/v1/todos").status_code == 200
    assert httpx.get(f"{api.url}/v1/todos").status_code == 401
    with client(api, tmp_path, user="u-chen") as newcomer:
        assert newcomer.get("/v1/todos").status_code == 429


def test_too_many_streams_of_one_credential(start: Callable[..., Started], tmp_path: Path) -> None:
    api, http = start(streams_per_credential="2")

    def opened(caller: httpx.Client) -> Listener:
        token = caller.headers["authorization"].removeprefix("Bearer ")
        return Listener(f"{api.url}/v1/events", token).start()

    with ExitStack() as stack:
        first, second = opened(http), opened(http)
        stack.callback(second.stop)
        with http.stream("GET", "/v1/events") as refused:
            assert refused.status_code == 429  # or it would never end
            refused.read()
        error = assert_shape(refused)
        assert error["code"] == "rate_limited"
        assert refused.headers["retry-after"] == "30"
        assert "2 streams" in error["message"]
        stack.callback(opened(stack.enter_context(client(api, tmp_path, user="u-chen"))).stop)
        first.stop()

        def room() -> bool:
            with http.stream("GET", "/v1/events") as answer:
                return answer.status_code == 200

        wait_until(room, 10, "a stream that ended makes room")


def test_a_database_that_is_away_is_503_and_comes_back(
    private_postgres: EmbeddedPostgres, start: Callable[..., Started]
) -> None:
    api, http = start(database_url=private_postgres.url)
    assert http.get("/v1/todos").status_code == 200
    assert http.get("/readyz").json()["database"] is True
    private_postgres.kill9()
    answer = http.get("/v1/todos")
    assert answer.status_code == 503
    assert assert_shape(answer)["code"] == "unavailable"
    ready = http.get("/readyz")
    assert (ready.status_code, ready.json()["database"]) == (503, False)
    assert http.get("/healthz").status_code == 200
    private_postgres.start()
    wait_until(lambda: http.get("/v1/todos").status_code == 200, 20, "the database is back")
    assert "Traceback" not in api.log()


def test_redis_away_means_not_ready_but_reading_goes_on(
    private_redis: EmbeddedRedis, start: Callable[..., Started]
) -> None:
    _, http = start(redis_url=private_redis.url)
    assert http.get("/readyz").json() == {"database": True, "redis": True, "broker": True}
    private_redis.kill9()
    assert http.get("/readyz").json() == {"database": True, "redis": False, "broker": False}
    assert http.get("/v1/todos").status_code == 200
    answer = http.get("/v1/preparations/none")
    assert (answer.status_code, assert_shape(answer)["code"]) == (503, "unavailable")


def test_metrics_count_what_is_pending(door: Door) -> None:
    def pending() -> dict[str, float]:
        text = httpx.get(f"{door.url}/metrics").text
        families = {f.name: f for f in text_string_to_metric_families(text)}
        assert "opstage_oldest_due_seconds" in families
        return {s.labels["code"]: s.value for s in families["opstage_operations_pending"].samples}

    before = pending()
    assert set(before) == {"100", "101", "102", "103", "104", "105"}
    door.stage("u-lin", **new_customer())
    assert pending()["100"] == before["100"] + 1


def test_an_agent_is_told_what_it_may_not_in_words_that_help(door: Door) -> None:
    prepared = door.prepare("u-lin", **new_customer())["preparationId"]
    answer = door.as_("u-lin", AGENT).http.post(f"/v1/preparations/{prepared}/confirm")
    assert answer.status_code == 403
    assert json.loads(answer.content)["error"]["hint"]
