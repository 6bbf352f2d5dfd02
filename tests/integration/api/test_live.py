"""Live status: long poll and streams tell everything once and in order, whatever restarts or breaks meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from sqlalchemy import delete

from staging.domain.cursor import load_cursor
from staging.storage.tables import op_queue
from tests.support.api import AGENT, B002, OPERATOR, PERSON, SERVICE, Door, open_door
from tests.support.demo_requests import new_customer, new_supplier
from tests.support.private import EmbeddedPostgres, EmbeddedRedis
from tests.support.sse import Listener
from tests.support.waiting import wait_until


def listening(door: Door, path: str = "/v1/events", user: str = "u-lin", last: str = "") -> Listener:
    return Listener(door.url + path, door.as_(user).token, last)


# --- long poll -------------------------------------------------------------------------------------------------------


def test_the_long_poll_answers_as_soon_as_something_happens(door: Door) -> None:
    op = door.stage("u-lin", **new_customer())
    timer = threading.Timer(0.7, door.execute, [op["id"]])
    timer.start()
    started = time.monotonic()
    answer = door.as_("u-lin").get(f"/v1/operations/{op['id']}/status?wait=20&after={op['seq']}")
    took_s = time.monotonic() - started
    timer.join()
    assert answer["seq"] > op["seq"]
    assert 0.6 < took_s < 4
    assert answer.keys() == {"id", "seq", "status", "code", "message", "resultBillId", "link"}


def test_the_long_poll_answers_at_once_where_something_has_happened(door: Door) -> None:
    op = door.run("u-lin", **new_customer())
    started = time.monotonic()
    for after in (0, op["seq"] - 1):
        answer = door.as_("u-lin").get(f"/v1/operations/{op['id']}/status?wait=30&after={after}")
        assert (answer["code"], answer["seq"]) == (200, op["seq"])
    assert time.monotonic() - started < 3


def test_the_long_poll_answers_in_time_where_nothing_happens(door: Door) -> None:
    op = door.stage("u-lin", **new_customer())
    started = time.monotonic()
    answer = door.as_("u-lin").get(f"/v1/operations/{op['id']}/status?wait=1.5&after={op['seq']}")
    assert answer["seq"] == op["seq"]
    assert 1.4 < time.monotonic() - started < 4


# --- streams ---------------------------------------------------------------------------------------------------------


def test_an_operations_events_from_the_first_on(door: Door) -> None:
    op = door.stage("u-lin", **new_customer(), conversationId="c-9")
    with listening(door, f"/v1/operations/{op['id']}/events") as listener:
        listener.wait_for(1)
        door.execute(op["id"])
        events = listener.wait_for(3)
    assert [e.id for e in events] == [f"{op['id']}:{seq}" for seq in (1, 2, 3)]
    assert [(e.data["status"], e.data["code"]) for e in events] == [
        ("pending", 100),
        ("pending", 101),
        ("success", 200),
    ]
    assert {e.name for e in events} == {"operation"}
    last = events[-1].data
    assert last.keys() == {
        *("opId", "seq", "status", "code", "message", "resultBillId", "link", "conversationId", "at"),
    }
    assert last["resultBillId"]
    assert last["link"].startswith("/form/customer?bill=")
    assert last["conversationId"] == "c-9"
    assert last["at"].endswith("Z")


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_an_operations_stream_resumes_after_what_was_seen(after: int, door: Door) -> None:
    op = door.run("u-lin", **new_customer())
    with listening(door, f"/v1/operations/{op['id']}/events", last=f"{op['id']}:{after}") as listener:
        door.as_("u-lin").post(f"/v1/operations/{op['id']}/cancel", expect=409)
        listener.wait_for(3 - after)
        time.sleep(0.3)
        assert [seq for _, seq in listener.keys] == list(range(after + 1, 4))


@pytest.mark.parametrize("last", ["", "nonsense", "x:1", "-1", ":", "a" * 15_000, "%00", "1e9"])
def test_a_last_event_id_that_is_none_of_ours_is_no_obstacle(last: str, door: Door) -> None:
    op = door.stage("u-lin", **new_customer())
    with listening(door, f"/v1/operations/{op['id']}/events", last=last) as listener:
        assert listener.wait_for(1)[0].key == (op["id"], 1)
    with listening(door, last=last) as listener:
        assert listener.status == 200
        made = door.stage("u-lin", **new_customer())
        assert listener.wait_for(1)[0].key == (made["id"], 1)


def test_the_users_stream_tells_from_now_on_and_nothing_twice(door: Door) -> None:
    door.run("u-lin", **new_customer())
    with listening(door) as listener:
        ops = [door.stage("u-lin", **new_customer())["id"] for _ in range(5)]
        door.execute(*ops)
        listener.wait_for(15)
        time.sleep(0.5)
    assert sorted(listener.keys) == sorted((op, seq) for op in ops for seq in (1, 2, 3))
    for op in ops:
        assert [seq for one, seq in listener.keys if one == op] == [1, 2, 3]
    cursors = [load_cursor(e.id) for e in listener.events]
    assert all(cursors)


def test_it_is_told_at_once(door: Door) -> None:
    """Well under the interval at which the journal is looked at anyway."""
    with listening(door) as listener:
        delays = []
        for count in range(1, 6):
            door.stage("u-lin", **new_customer())
            committed = time.monotonic()
            delays.append(listener.wait_for(count)[-1].at - committed)
    assert sorted(delays)[2] < 0.5


def test_other_peoples_events_never_arrive(door: Door) -> None:
    listeners = {
        "u-lin": listening(door),
        "u-chen": listening(door, user="u-chen"),
        "ops": Listener(door.url + "/v1/events", door.as_("ops", OPERATOR).token),
        "erp": Listener(door.url + "/v1/events", door.as_("erp", SERVICE).token),
        "agent": Listener(door.url + "/v1/events", door.as_("u-lin", AGENT).token),
        "u-gao": Listener(door.url + "/v1/events", door.as_("u-gao", PERSON, B002).token),
    }
    for listener in listeners.values():
        listener.start()
    lin = door.run("u-lin", **new_customer())["id"]
    chen = door.stage("u-chen", **new_supplier())["id"]
    gao = door.stage("u-gao", B002, **new_customer())["id"]
    expected = {
        "u-lin": {lin},
        "agent": {lin},
        "u-chen": {chen},
        "ops": {lin, chen},
        "u-gao": {gao},
        "erp": set(),
    }
    for name, listener in listeners.items():
        listener.wait_for({"u-lin": 3, "agent": 3, "ops": 4, "erp": 0}.get(name, 1))
    time.sleep(0.5)
    for name, listener in listeners.items():
        listener.stop()
        assert {op for op, _ in listener.keys} == expected[name], name


def test_another_tenants_user_of_the_same_name_hears_nothing(door: Door) -> None:
    with Listener(door.url + "/v1/events", door.token("u-lin", PERSON, B002)) as stranger:
        with listening(door) as listener:
            door.stage("u-lin", **new_customer())
            listener.wait_for(1)
        time.sleep(0.3)
        assert stranger.events == []


def test_a_stream_that_breaks_before_anything_happened_still_misses_nothing(door: Door) -> None:
    listener = listening(door).start()
    wait_until(lambda: listener.last_event_id, 5, "it is told where it stands")
    listener.stop()
    assert listener.events == []
    op = door.stage("u-lin", **new_customer())
    with listening(door, last=listener.last_event_id) as again:
        assert again.wait_for(1)[0].key == (op["id"], 1)


def test_a_cursor_of_somebody_else_shows_ones_own_only(door: Door) -> None:
    with listening(door) as listener:
        door.stage("u-lin", **new_customer())
        cursor = listener.wait_for(1)[0].id
    mine = door.stage("u-chen", **new_supplier())["id"]
    door.stage("u-lin", **new_customer())
    with listening(door, user="u-chen", last=cursor) as other:
        other.wait_for(1)
        time.sleep(0.3)
        assert {op for op, _ in other.keys} >= {mine}
        makers = {door.as_("u-chen").get(f"/v1/operations/{op}")["maker"] for op, _ in other.keys}
        assert makers == {"u-chen"}


def test_a_listener_that_comes_and_goes_misses_nothing_and_hears_nothing_twice(door: Door) -> None:
    """Twelve connections cut at any moment while thirty operations move."""
    stop = threading.Event()
    made: list[str] = []

    def work() -> None:
        while len(made) < 30:
            made.append(door.stage("u-lin", **new_customer())["id"])
            door.execute(made[-1])
        stop.set()

    with listening(door) as first:
        cursor = first.last_event_id
        door.stage("u-lin", **new_customer())
        cursor = first.wait_for(1)[0].id
    worker = threading.Thread(target=work)
    worker.start()
    heard = []
    rng = random.Random(7)
    while not stop.is_set():
        listener = listening(door, last=cursor).start()
        time.sleep(rng.uniform(0.0, 0.4))
        listener.stop()
        heard += listener.keys
        cursor = listener.last_event_id
    worker.join()
    with listening(door, last=cursor) as listener:
        wait_until(lambda: len(heard) + len(listener.keys) >= 90, 15, "the rest arrives")
        time.sleep(0.5)
    heard += listener.keys
    assert sorted(heard) == sorted((op, seq) for op in made for seq in (1, 2, 3))
    for op in made:
        assert [seq for one, seq in heard if one == op] == [1, 2, 3]


# --- what may break --------------------------------------------------------------------------------------------------


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
    from staging.contracts.preparation import PrepareRequest
    from staging.domain.identity import Actor
    from tests.support.api import B001

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


def test_a_row_that_vanished_ends_nothing(door: Door) -> None:
    """Somebody cleans up by hand while others listen."""
    with listening(door) as listener:
        gone = door.stage("u-lin", **new_customer())["id"]
        listener.wait_for(1)
        engine = door.services.databases.store.engine
        with engine.begin() as connection:
            connection.execute(delete(op_queue).where(op_queue.c.sId == gone))
        there = door.stage("u-lin", **new_customer())["id"]
        assert listener.wait_for(2)[-1].key == (there, 1)
