"""RabbitMQ as the broker: messages are hints there as well, and a dead one loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import amqp  # type: ignore[import-untyped]
import pytest

from tests.support.broker_death import run_and_survive
from tests.support.fixtures import StartWorker
from tests.support.private import open_folder
from tests.support.processes import BeatProcess
from tests.support.rabbitmq import PrivateRabbitMQ
from tests.support.waiting import wait_until
from tests.support.world import DEPLOYED
from tests.support.world_fixtures import MakeWorld


@pytest.fixture
def rabbitmq() -> Iterator[PrivateRabbitMQ]:
    with open_folder() as folder, PrivateRabbitMQ(folder / "rabbitmq") as server:
        yield server


def test_the_queues_are_replicated_ones_where_that_is_asked_for(
    rabbitmq: PrivateRabbitMQ, open_world: MakeWorld, start_mortal_worker: StartWorker
) -> None:
    world = open_world(
        "postgresql", shared=True, broker_url=rabbitmq.url, broker_queue_type="quorum", **DEPLOYED
    )
    start_mortal_worker(world.env, concurrency=2)
    world.confirm(*(world.row() for _ in range(10)))
    wait_until(lambda: world.oracle.pending() == 0, 60, "executed by the confirm's message alone")
    assert world.oracle.verdict().require_sound().codes == {200: 10}
    declared = {"queue": "opstage.execute", "durable": True, "auto_delete": False}
    with amqp.Connection(f"127.0.0.1:{rabbitmq.port}") as connection:
        # Whoever declares it as another type is refused.
        connection.channel().queue_declare(**declared, arguments={"x-queue-type": "quorum"})
        with pytest.raises(amqp.PreconditionFailed, match="x-queue-type"):
            connection.channel().queue_declare(**declared)


def test_operations_run_over_rabbitmq_and_survive_its_death(
    rabbitmq: PrivateRabbitMQ,
    open_world: MakeWorld,
    start_mortal_worker: StartWorker,
    start_beat: Callable[[Mapping[str, str]], BeatProcess],
) -> None:
    world = open_world("postgresql", shared=True, broker_url=rabbitmq.url, **DEPLOYED)
    run_and_survive(world, start_mortal_worker, start_beat, die=rabbitmq.kill9, come_back=rabbitmq.restart)
