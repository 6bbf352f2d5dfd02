"""Archiving may be killed at any moment: nothing is lost or doubled, and the next run goes on."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from staging.storage import audit
from tests.support.archived import archive, archived, both, ended, live
from tests.support.cli import opstage_here
from tests.support.processes import clean_environment
from tests.support.waiting import wait_until
from tests.support.world import LIMITS, World
from tests.support.world_fixtures import only

pytestmark = only(lambda kind, shared: shared)
_BLOCKED = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'opstage-archive'"
    " AND wait_event_type = 'Lock' AND datname = current_database()",
    "mariadb": "SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
    " ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()",
}


def start(world: World, folder: Path, batch: int) -> subprocess.Popen[bytes]:
    """The command, with the usual limits instead of the tests' short ones."""
    command = [sys.executable, "-m", "staging.cli.main", "ops", "archive", "--older-than", "30"]
    env = clean_environment({name: value for name, value in world.env.items() if name not in LIMITS})
    with (folder / "archive.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--batch", str(batch)], env=env, cwd=folder, stdout=log, stderr=log
        )


def kill(process: subprocess.Popen[bytes]) -> bool:
    """False if it had ended by itself."""
    alive = process.poll() is None
    process.kill()
    process.wait(10)
    return alive


def blocked(world: World) -> bool:
    with world.queue.connect() as looking:
        return bool(looking.execute(text(_BLOCKED[world.kind])).scalar_one())


def test_killed_in_mid_transaction_nothing_has_moved(world: World, tmp_path: Path) -> None:
    if world.kind == "sqlite":
        pytest.skip("only one can be in a transaction that writes, so it cannot be stopped inside one")
    ended(world)
    archive(world)  # so that there is a head to hold
    ids = ended(world, 5)
    first, before = archived(world), both(world)
    seq = "`iSeq`" if world.kind == "mariadb" else '"iSeq"'
    with world.queue.connect() as holder:
        holder.execute(text(f"UPDATE ai_audit_head SET {seq} = {seq} + 0"))
        process = start(world, tmp_path, 500)
        try:
            # All rows are copied and deleted by now: what it waits for comes last.
            what = "the archiver waits for the audit log's head"
            wait_until(partial(blocked, world), 30, what, poll_s=0.2)  # MariaDB answers anew every 0.1 s
        finally:
            assert kill(process)
            holder.rollback()
    wait_until(lambda: not blocked(world) and live(world) == set(ids), 10, "all is as it was")
    assert (archived(world), both(world)) == (first, before)
    assert opstage_here(tmp_path, world.env, "ops", "archive", "--older-than", "30").code == 0
    assert (archived(world), both(world)) == ({*first, *ids}, before)


def goes_on(world: World, process: subprocess.Popen[bytes], moved: int) -> bool:
    return len(archived(world)) > moved or process.poll() is not None


def test_killed_again_and_again_it_comes_to_its_end(world: World, tmp_path: Path) -> None:
    if world.kind != "sqlite":
        pytest.skip("stopped inside its transaction in the test above")
    ids = ended(world, 60)
    before = both(world)
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    deaths = 0
    for _ in range(2):
        moved = len(archived(world))
        process = start(world, tmp_path, 1)
        wait_until(partial(goes_on, world, process, moved), 30, "it moves")
        time.sleep(chance.uniform(0, 0.05))
        deaths += kill(process)
        assert both(world) == before, f"seed {seed}"
        assert not archived(world) & live(world), f"seed {seed}"
    assert deaths >= 1, f"seed {seed}"
    done = opstage_here(tmp_path, world.env, "ops", "archive", "--older-than", "30", "--json")
    assert (done.code, done.json()["left"]) == (0, [])
    assert (archived(world), live(world), both(world)) == (set(ids), set(), before)
    with world.store.read() as connection:
        assert audit.verify(connection) == []
