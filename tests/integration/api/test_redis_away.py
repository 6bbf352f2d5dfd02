"""While Redis is killed or hangs: what was confirmed stays so, what was not says to try again, nothing is half done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from staging.storage.tables import op_event, op_queue
from tests.support.api import AGENT, Door, open_door
from tests.support.demo_requests import new_customer, new_outsource_order
from tests.support.private import EmbeddedRedis
from tests.support.waiting import wait_until

PATIENCE_S = 3.0  # a call that takes longer fails: nobody waits for a Redis that is not there


@pytest.fixture
def door(private_redis: EmbeddedRedis, tmp_path: Path) -> Iterator[Door]:
    """An API whose Redis may be killed."""
    with open_door("sqlite", private_redis.url, tmp_path) as made:
        yield made


def rows(door: Door) -> list[int]:
    """Operations and events there are."""
    with door.services.databases.store.read() as connection:
        return [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (op_queue, op_event)
        ]


@pytest.mark.parametrize("how", ["killed", "hanging"])
def test_without_redis(door: Door, private_redis: EmbeddedRedis, how: str) -> None:
    person, agent = door.as_("u-zhao"), door.as_("u-zhao", AGENT)
    first, second, third = (door.prepare("u-zhao", **new_customer())["preparationId"] for _ in range(3))
    confirmed = person.post(f"/v1/preparations/{first}/confirm", {}, expect=202)["operations"]
    supplier = person.post("/v1/forms/supplier/query", {"filter": {"invalid": False}})["items"][0]["id"]
    product = person.post("/v1/forms/product/query", {"filter": {"invalid": False}})["items"][0]["id"]
    by_hand = door.stage("u-zhao", **new_outsource_order(supplier, product))["id"]
    before = rows(door)
    if how == "killed":
        private_redis.kill9()
    else:
        private_redis.pause()
    person.http.timeout = agent.http.timeout = httpx.Timeout(PATIENCE_S)

    # what is confirmed is confirmed, whoever asks again
    again = person.post(f"/v1/preparations/{first}/confirm", {}, expect=202)["operations"]
    assert [o["id"] for o in again] == [o["id"] for o in confirmed]
    # what is not says so, with what to do, and leaves nothing behind
    for refused in (
        person.post(f"/v1/preparations/{second}/confirm", {}, expect=503),
        person.post(f"/v1/preparations/{second}/confirm", {"edits": {"city": "杭州"}}, expect=503),
        person.get(f"/v1/preparations/{second}", expect=503),
        person.delete(f"/v1/preparations/{second}", expect=503),
        agent.post("/v1/preparations", new_customer(), expect=503),
    ):
        error = refused["error"]
        assert error["code"] == "unavailable"
        assert "Redis" in error["message"]
        assert "again" in error["hint"]
    assert rows(door) == before
    # looking and acting go on
    op_id = confirmed[0]["id"]
    assert person.get(f"/v1/operations/{op_id}/status")["code"] == 100
    assert op_id in [o["id"] for o in person.get("/v1/todos")["running"]]
    assert by_hand in [o["id"] for o in person.post("/v1/todos/query", {})["items"]]
    assert person.post(f"/v1/operations/{by_hand}/complete", {"resultBillId": "W-1"})["code"] == 200
    assert agent.post(f"/v1/operations/{op_id}/cancel", {"reason": "改主意了"})["code"] == 450
    assert httpx.get(f"{door.url}/healthz", timeout=PATIENCE_S).status_code == 200

    if how == "killed":
        private_redis.start()
    else:
        private_redis.resume()
    person.http.timeout = httpx.Timeout(30)
    wait_until(lambda: person.http.get("/readyz").status_code == 200, 15, "Redis is back")
    if how == "hanging":  # nothing was lost: the same preparations are confirmed, once each
        for preparation in (second, third):
            ids = {
                person.post(f"/v1/preparations/{preparation}/confirm", {}, expect=202)["operations"][0]["id"]
                for _ in range(2)
            }
            assert len(ids) == 1
    after = door.stage("u-zhao", **new_customer())["id"]
    door.execute(after)
    assert person.get(f"/v1/operations/{after}")["code"] == 200
    assert "Traceback" not in door.api.log()
