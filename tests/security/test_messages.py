"""D14, D19: what travels through Redis names operations and says how they stand, and nothing of what they contain."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from tests.support.api import PERSON, Door
from tests.support.demo_papers import quotation, some
from tests.support.demo_requests import new_customer, word
from tests.support.waiting import wait_until

SECRETS = ("hunter2-Passw0rd", "98765.43", "13800138000", "0.9876")
FIELDS = {"opId", "seq", "status", "code", "message", "resultBillId", "link", "conversationId", "at"}


@contextmanager
def heard(door: Door) -> Iterator[list[dict[str, Any]]]:
    """Every message on every channel meanwhile, by a subscriber of its own."""
    client = redis.Redis.from_url(door.env["OPSTAGE_REDIS_URL"], decode_responses=True)
    messages: list[dict[str, Any]] = []
    pubsub = client.pubsub()  # type: ignore[no-untyped-call]
    pubsub.psubscribe(**{"*": messages.append})
    thread = pubsub.run_in_thread(sleep_time=0.01, daemon=True)
    wait_until(lambda: client.pubsub_numpat() > 0, 5, "it listens")
    try:
        yield messages
    finally:
        thread.stop()
        thread.join(5)
        client.close()


def with_secrets(door: Door) -> dict[str, Any]:
    request = quotation(some(door, "customer")["id"], memo=SECRETS[0], taxRate=SECRETS[3], contact=SECRETS[2])
    request["payload"]["parts"][0]["price"] = SECRETS[1]
    return request


@pytest.fixture
def told(door: Door) -> tuple[list[dict[str, Any]], str]:
    """What subscribers heard of a create that succeeds and one that fails, with secrets in both; and its id."""
    with heard(door) as messages:
        op_id = door.run("u-zhao", **with_secrets(door), conversationId="c-1")["id"]
        name = word()
        twins = [door.stage("u-zhao", **new_customer(name=name, memo=SECRETS[0]))["id"] for _ in range(2)]
        door.execute(*twins)
        codes = [door.as_("u-zhao").get(f"/v1/operations/{i}")["code"] for i in (op_id, *twins)]
        assert codes == [200, 200, 409]
        wanted = lambda: len([m for m in messages if m["channel"].startswith("ai:op:")]) >= 18  # noqa: E731
        wait_until(wanted, 10, "all is told")
    return [m for m in messages if m["channel"].startswith("ai:")], op_id


def test_a_channels_message_has_the_contracts_fields_and_none_of_the_payload(
    door: Door, told: tuple[list[dict[str, Any]], str]
) -> None:
    """D14."""
    messages, op_id = told
    for message in messages:
        assert set(json.loads(message["data"])) == FIELDS
        for secret in SECRETS:
            assert secret not in message["data"]
    channels = {m["channel"] for m in messages if op_id in m["data"]}
    assert channels == {f"ai:op:id:{op_id}", "ai:op:user:B001:S01:u-zhao"}
    assert {m["channel"] for m in messages if m["channel"].startswith("ai:op:user:")} == {
        "ai:op:user:B001:S01:u-zhao"
    }


def test_a_task_message_carries_ids_alone(door: Door) -> None:
    """D19: so that Flower, which shows arguments, has nothing else to show."""
    client = redis.Redis.from_url(door.env["OPSTAGE_REDIS_URL"])
    queue = door.services.settings.queue_name
    client.delete(queue, *client.keys("ai:op:wake:*"))  # nothing is on its way
    op_id = door.stage("u-zhao", **with_secrets(door))["id"]
    raw = wait_until(lambda: client.lrange(queue, 0, -1), 5, "it is announced")
    client.close()
    assert len(raw) == 1
    envelope = json.loads(raw[0])
    assert json.loads(base64.b64decode(envelope["body"]))[:2] == [[[op_id]], {}]
    assert envelope["headers"]["argsrepr"] in (f"[['{op_id}']]", f"(['{op_id}'],)", f"[[{op_id!r}]]")
    said = str(raw[0]) + base64.b64decode(envelope["body"]).decode()
    for secret in (*SECRETS, "u-zhao", "B001", door.token("u-zhao", PERSON)):
        assert secret not in said
