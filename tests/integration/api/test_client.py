"""Our client of the API: its streams outlast what breaks, its errors are the API's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from staging.client.api_client import ApiClient, ApiRefused, path_of
from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError
from staging.embedded.spawn import free_port
from tests.support.api import Door, open_door
from tests.support.demo_requests import new_customer
from tests.support.private import EmbeddedRedis
from tests.support.waiting import wait_until


@pytest.fixture
def own_door(private_redis: EmbeddedRedis, tmp_path: Path) -> Iterator[Door]:
    with open_door("sqlite", private_redis.url, tmp_path) as made:
        yield made


class Watching:
    """``ApiClient.events`` in a thread, as a command line reads it."""

    def __init__(self, url: str, token: str, patience_s: float = 30.0) -> None:
        self.events: list[dict[str, Any]] = []
        self.error: OpstageError | None = None
        self._arguments = (url, token, patience_s)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        url, token, patience_s = self._arguments
        try:
            with ApiClient(url, token, "en") as client:
                for event in client.events("events", patience_s=patience_s):
                    self.events.append(event)
        except OpstageError as error:
            self.error = error

    def heard(self, op_id: str) -> list[int]:
        return [event["seq"] for event in self.events if event["opId"] == op_id]


def test_a_watched_stream_is_resumed_after_a_restart(own_door: Door) -> None:
    door = own_door
    watching = Watching(door.url, door.as_("u-lin").token)
    first = door.stage("u-lin", **new_customer())["id"]
    wait_until(lambda: watching.heard(first) == [1] or _again(door), 15, "it listens")
    started = watching.events[0]["opId"]
    door.api.stop()
    door.execute(started)
    door.api.start()
    after = door.run("u-lin", **new_customer())["id"]
    wait_until(lambda: watching.heard(after) == [1, 2, 3], 15, "it goes on")
    assert watching.heard(started) == [1, 2, 3]
    assert watching.error is None


def _again(door: Door) -> bool:
    door.stage("u-lin", **new_customer())
    return False


def test_a_server_that_stays_away_ends_the_watching(own_door: Door) -> None:
    watching = Watching(own_door.url, own_door.as_("u-lin").token, patience_s=1.5)
    wait_until(lambda: watching.events or _again(own_door), 15, "it listens")
    own_door.api.stop()
    watching.thread.join(15)
    assert watching.error is not None
    assert watching.error.code is ErrorCode.UNAVAILABLE


def test_a_credential_that_ends_ends_the_watching(own_door: Door) -> None:
    watching = Watching(own_door.url, own_door.token("u-lin", ttl_s=2.5))
    watching.thread.join(20)
    assert isinstance(watching.error, ApiRefused)
    assert watching.error.code is ErrorCode.UNAUTHENTICATED


def test_nobody_there_is_unavailable_at_once() -> None:
    with ApiClient(f"http://127.0.0.1:{free_port()}", "t", "en") as client:
        for ask in (lambda: client.get("me"), lambda: next(client.events("events"))):
            with pytest.raises(OpstageError) as caught:
                ask()
            assert caught.value.code is ErrorCode.UNAVAILABLE


def test_the_apis_words_arrive_as_they_are(door: Door) -> None:
    for locale, part in (("zh", "找不到"), ("en", "not found")):
        with ApiClient(door.url + "/", door.as_("u-lin").token, locale) as client:
            with pytest.raises(ApiRefused) as caught:
                client.get("operations", "none")
            assert part in caught.value.message(locale)
            assert caught.value.hint(locale) == caught.value.error.hint


@pytest.mark.parametrize("step", ["..", ".", "a/b", "?x=1", "#", "%2e%2e", "\0", "单号", "a b", "\ud800"])
def test_no_id_leaves_its_place_in_the_path(step: str, door: Door) -> None:
    assert path_of(["operations", step]).count("/") == 1
    with ApiClient(door.url, door.as_("u-lin").token, "en") as client:
        with pytest.raises(ApiRefused) as caught:
            client.get("operations", step, "status")
        assert caught.value.code in (ErrorCode.OPERATION_NOT_FOUND, ErrorCode.PAYLOAD_INVALID)
