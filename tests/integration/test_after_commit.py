"""What Redis has to do after a commit goes in one round trip; what it refuses of that takes nothing else along."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from staging.bootstrap import open_notifier
from staging.contracts.event import OperationEvent
from staging.contracts.status import Status
from staging.domain.identity import Tenant
from staging.domain.operation import Told
from staging.domain.ports import Published
from staging.messaging.redis_notifier import operation_channel
from staging.settings import Settings
from tests.support.api import open_door
from tests.support.demo_requests import new_customer
from tests.support.private import EmbeddedRedis
from tests.support.processes import settings_from

_EVENT = OperationEvent(
    op_id="op-1", seq=1, status=Status.PENDING, code=100, message="", at=datetime.now(UTC)
)
TOLD = Told(Tenant("B001", "S01"), "u-lin", _EVENT)


@pytest.fixture
def settings(private_redis: EmbeddedRedis, tmp_path: Path) -> Settings:
    return settings_from({"OPSTAGE_REDIS_URL": private_redis.url, "OPSTAGE_DATA_DIR": str(tmp_path)})


def test_events_flag_and_keys_go_together(settings: Settings, private_redis: EmbeddedRedis) -> None:
    client = private_redis.client()
    client.set("of no more use", 1)
    notifier = open_notifier(settings)
    assert notifier.publish([TOLD], raise_flag=True, drop=["of no more use"]) == Published(True, raised=True)
    assert client.exists("of no more use") == 0
    # until a worker lowers the flag a message is on its way
    assert notifier.publish([TOLD], raise_flag=True) == Published(True, raised=False)
    assert notifier.publish([TOLD]).reached


def test_a_flag_that_cannot_be_raised_leaves_the_events(
    settings: Settings, private_redis: EmbeddedRedis
) -> None:
    client = private_redis.client()
    listener = client.pubsub()  # type: ignore[no-untyped-call]
    listener.subscribe(operation_channel("op-1"))
    assert listener.get_message(timeout=5)
    client.config_set("maxmemory", "1")
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.set("any", 1)
    assert open_notifier(settings).publish([TOLD], raise_flag=True) == Published(True, raised=True)
    heard = listener.get_message(timeout=5)
    assert heard is not None
    assert b"op-1" in heard["data"]


def test_nobody_knows_of_a_wake_up_where_redis_is_away(
    settings: Settings, private_redis: EmbeddedRedis
) -> None:
    private_redis.kill9()
    assert open_notifier(settings).publish([TOLD], raise_flag=True) == Published(False, raised=True)


def test_a_confirmed_preparation_is_forgotten(private_redis: EmbeddedRedis, tmp_path: Path) -> None:
    client = private_redis.client()
    with open_door("sqlite", private_redis.url, tmp_path) as door:
        kept = f"ai:prep:{door.prepare('u-lin', **new_customer())['preparationId']}"
        assert client.exists(kept) == 1
        door.as_("u-lin").post(f"/v1/preparations/{kept.rpartition(':')[2]}/confirm", expect=202)
        assert client.exists(kept) == 0
