"""What every broker is put to: it dies with operations on their way, comes back, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.fixtures import StartWorker
from tests.support.processes import BeatProcess
from tests.support.waiting import wait_until
from tests.support.world import World


def run_and_survive(
    world: World,
    start_worker: StartWorker,
    start_beat: Callable[[Mapping[str, str]], BeatProcess],
    *,
    die: Callable[[], object],
    come_back: Callable[[], object],
) -> None:
    """Operations run over the broker of ``world``; what is confirmed between ``die`` and ``come_back`` runs, too."""

    def all_ended() -> bool:
        return world.oracle.pending() == 0

    start_worker(world.env, concurrency=2)
    world.confirm(*(world.row() for _ in range(30)))
    wait_until(all_ended, 60, "executed by the confirm's message alone: no beat runs yet")
    start_beat(world.env)
    die()
    for _ in range(3):
        world.stage()
    come_back()
    wait_until(all_ended, 90, "what was confirmed meanwhile is executed")
    assert world.oracle.verdict().require_sound().codes == {200: 33}
