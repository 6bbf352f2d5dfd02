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
from tests.support.world import DEPLOYED
from tests.support.world_fixtures import MakeWorld

StartBeat = Callable[[Mapping[str, str]], BeatProcess]
_AT_ONCE = 100
_BATCH = "20"  # small, so that all meet again and again and nobody is done before the last has begun


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
    ids: list[str] = []
    for _ in range(count // _AT_ONCE):
        ids += world.confirm(*(world.row() for _ in range(_AT_ONCE)))
    client = private_redis.client()
    client.flushall()  # nobody may begin before all are there
    client.close()
    for number in range(mains):
        start_mortal_worker(world.env, name=f"racer{number}", concurrency=children)
    # Every id in several messages, in other company each time: as many hints as there are competitors, all at once.
    for step in range(1, mains * children + 1):
        assert world.dispatcher.announce(ids[step::7] + ids[:step])
    start_beat(world.env)
    wait_until(lambda: world.oracle.pending() == 0, 300, "everything is executed", poll_s=0.5)
    verdict = world.oracle.verdict().require_sound()
    assert verdict.codes == {200: count}
    assert verdict.effects == count
    with world.erp.connect() as connection:
        workers = connection.execute(select(func.count(effects.c.iPid.distinct()))).scalar_one()
    assert workers == mains * children, "not all of them took part: no race"
