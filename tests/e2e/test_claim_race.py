"""Many real worker processes after the same rows: each operation is executed exactly once, each event is there once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from sqlalchemy import func, select

from tests.support.effects_adapter import effects
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedRedis
from tests.support.processes import BeatProcess
from tests.support.waiting import wait_until
from tests.support.world import DEPLOYED, World
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
_AT_ONCE = 100
_BATCH = "20"  # small, so that all meet again and again


@pytest.mark.parametrize(
    ("kind", "shared", "mains", "children", "count"),
    [
        ("postgresql", True, 4, 2, 2000),
        ("mariadb", False, 2, 2, 400),
        ("sqlite", True, 2, 2, 1500),
    ],
    ids=["postgresql-8-workers-2000", "mariadb-4-workers-400", "sqlite-4-workers-1500"],
)
@pytest.mark.timeout(400)
def test_workers_racing_for_the_same_rows_execute_each_once(
    open_world: MakeWorld,
    private_redis: EmbeddedRedis,
    start_mortal_worker: StartWorker,
    start_beat: StartBeat,
    kind: str,
    shared: bool,
    mains: int,
    children: int,
    count: int,
) -> None:
    world = open_world(kind, shared=shared, claim_batch=_BATCH, **DEPLOYED)
    racers = mains * children
    ids = confirmed(world, count)
    client = private_redis.client()
    client.flushall()  # nobody may begin before all are there
    client.close()
    for number in range(mains):
        start_mortal_worker(world.env, name=f"racer{number}", concurrency=children)
    announce_to_each(world, ids, racers)
    start_beat(world.env)

    def over() -> bool:
        """All is executed and all took part; goes on with more for as long as somebody has not."""
        if world.oracle.pending():
            return False
        if took_part(world) == racers:
            return True
        more = confirmed(world, _AT_ONCE)
        ids.extend(more)
        announce_to_each(world, more, racers)
        return False

    wait_until(over, 300, "everything is executed, by all of them", poll_s=0.5)
    verdict = world.oracle.verdict().require_sound()
    assert verdict.codes == {200: len(ids)}
    assert verdict.effects == len(ids)


def confirmed(world: World, count: int) -> list[str]:
    """Ids of so many operations that were just confirmed."""
    ids: list[str] = []
    for _ in range(count // _AT_ONCE):
        ids += world.confirm(*(world.row() for _ in range(_AT_ONCE)))
    return ids


def announce_to_each(world: World, ids: list[str], racers: int) -> None:
    """As many messages as there are competitors, all at once; every id in several, in other company each time."""
    for step in range(1, racers + 1):
        assert world.dispatcher.announce(ids[step::7] + ids[:step], raised=True)


def took_part(world: World) -> int:
    """How many processes have executed anything."""
    with world.erp.connect() as connection:
        return connection.execute(select(func.count(effects.c.iPid.distinct()))).scalar_one()
