"""Live status: long poll and streams tell everything once and in order, whatever restarts or breaks meanwhile."""

from __future__ import annotations

import random
import threading
import time

import pytest
from sqlalchemy import delete

from staging.domain.cursor import load_cursor
from staging.storage.tables import op_queue
from tests.support.api import AGENT, B002, OPERATOR, PERSON, SERVICE, Door, listening
from tests.support.demo_requests import new_customer, new_supplier
from tests.support.sse import Listener
from tests.support.waiting import wait_until

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
