"""Streams and long polls while something breaks: the API restarts, Redis or the database is away, a credential ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from staging.contracts.preparation import PrepareRequest
from staging.domain.identity import Actor
from tests.support.api import AGENT, B001, PERSON, Door, listening, open_door
from tests.support.demo_requests import new_customer
from tests.support.private import EmbeddedPostgres, EmbeddedRedis
from tests.support.sse import Listener
from tests.support.waiting import wait_until


@pytest.fixture
def own_door(private_redis: EmbeddedRedis, tmp_path: Path) -> Iterator[Door]:
    """An API whose Redis may be killed."""
    with open_door("sqlite", private_redis.url, tmp_path, stream_heartbeat_s="0.5") as made:
        yield made


def test_streams_outlive_a_restart_of_the_api(own_door: Door) -> None:
    door = own_door
    listener = listening(door).start()
    before = door.run("u-lin", **new_customer())["id"]
    listener.wait_for(3)
    op_listener = listening(door, f"/v1/operations/{before}/events").start()
    op_listener.wait_for(3)
    door.api.stop()
    wait_until(lambda: listener.ended and op_listener.ended, 10, "the streams end with the server")
    meanwhile = _staged_without_api(door)
    door.execute(meanwhile)
    door.api.start()
    with listening(door, last=listener.last_event_id) as again:
        after = door.run("u-lin", **new_customer())["id"]
        again.wait_for(6)
        time.sleep(0.5)
    assert again.keys == [(op, seq) for op in (meanwhile, after) for seq in (1, 2, 3)]
    with listening(door, f"/v1/operations/{before}/events", last=op_listener.last_event_id) as rest:
        time.sleep(0.5)
        assert rest.events == []


def _staged_without_api(door: Door) -> str:
    request = PrepareRequest.model_validate(new_customer())
    prepared = door.services.prepare.prepare(Actor(B001, "u-lin", AGENT), request)
    (operation,) = door.services.confirm.confirm(Actor(B001, "u-lin", PERSON), prepared.preparation_id)
    return operation.id


def test_a_stop_signal_ends_streams_and_long_polls_soon(own_door: Door) -> None:
    door = own_door
    op = door.stage("u-lin", **new_customer())
    listener = listening(door).start()
    statuses: list[int] = []

    def poll() -> None:
        path = f"/v1/operations/{op['id']}/status?wait=50&after={op['seq']}"
        statuses.append(door.as_("u-lin").http.get(path, timeout=60).status_code)

    waiting = threading.Thread(target=poll)
    waiting.start()
    time.sleep(0.5)
    started = time.monotonic()
    door.api.stop()
    assert time.monotonic() - started < 5
    waiting.join(5)
    assert statuses == [200]
    assert listener.ended
    assert "Traceback" not in door.api.log()


def test_without_redis_the_journal_is_read_and_nothing_is_lost(
    own_door: Door, private_redis: EmbeddedRedis
) -> None:
    door = own_door
    listener = listening(door).start()
    op_id = door.stage("u-lin", **new_customer())["id"]
    listener.wait_for(1)
    with listening(door, f"/v1/operations/{op_id}/events") as one:
        one.wait_for(1)
        private_redis.kill9()
        door.execute(op_id)
        listener.wait_for(3, timeout_s=10)
        one.wait_for(3, timeout_s=10)
        poll = f"/v1/operations/{op_id}/status?wait=5&after=2"
        assert door.as_("u-lin").get(poll)["code"] == 200
    private_redis.start()
    wait_until(lambda: door.as_("u-lin").http.get("/readyz").status_code == 200, 15, "Redis is back")
    back = door.run("u-lin", **new_customer())["id"]
    listener.wait_for(6, timeout_s=10)
    time.sleep(0.5)
    listener.stop()
    assert listener.keys == [(op, seq) for op in (op_id, back) for seq in (1, 2, 3)]
    assert "Traceback" not in door.api.log()


def test_a_heartbeat_comes_while_nothing_happens(own_door: Door) -> None:
    with listening(own_door) as listener:
        wait_until(lambda: len(listener.comments) >= 4, 5, "heartbeats")
    times = [at for text, at in listener.comments if "ping" in text]
    gaps = [after - before for before, after in pairwise(times)]
    assert all(0.3 < gap < 1.5 for gap in gaps)


def test_a_stream_ends_with_its_credential(own_door: Door) -> None:
    door = own_door
    token = door.token("u-lin", ttl_s=2.5)
    started = time.monotonic()
    with Listener(door.url + "/v1/events", token) as listener:
        wait_until(lambda: listener.ended, 10, "the stream ends")
        assert 1.0 < time.monotonic() - started < 6
    assert listener.status == 200
    assert httpx.get(door.url + "/v1/events", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_a_stream_ends_soon_after_its_credential_was_taken_back(own_door: Door) -> None:
    door = own_door
    token = door.token("u-chen")
    with Listener(door.url + "/v1/events", token) as revoked, listening(door) as other:
        file = door.folder / "tokens.json"
        file.write_text(json.dumps([t for t in json.loads(file.read_text()) if t["user"] != "u-chen"]))
        wait_until(lambda: revoked.ended, 45, "the stream ends", poll_s=0.5)
        assert not other.ended


def test_a_stream_waits_for_a_database_that_is_away(
    private_postgres: EmbeddedPostgres, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSTAGE_TEST_POSTGRES_URL", private_postgres.url)
    with open_door("postgresql", redis_url, tmp_path) as door, listening(door) as listener:
        door.stage("u-lin", **new_customer())
        listener.wait_for(1)
        private_postgres.kill9()
        time.sleep(2)
        private_postgres.start()
        wait_until(lambda: door.as_("u-lin").http.get("/v1/todos").status_code == 200, 20, "it is back")
        door.stage("u-lin", **new_customer())
        listener.wait_for(2, timeout_s=20)
        assert not listener.ended
        assert len(set(listener.keys)) == 2
