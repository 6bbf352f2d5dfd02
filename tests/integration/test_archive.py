"""What ended long ago goes to the archive as it was; everything else, and everybody at work, is left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import select, text

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode as C
from staging.domain.errors import Refused
from staging.storage import audit
from staging.storage.tables import op_queue
from tests.support.archived import age, archive, archived, both, ended, live, rows
from tests.support.world import World
from tests.support.world_fixtures import only

pytestmark = only(lambda kind, shared: shared)
OURS = ("jDependsOn", "jExtra", "tArchiveDate")


def test_row_and_events_are_moved_as_they_were_and_the_audit_log_stays(world: World) -> None:
    ids = ended(world, 3, note="名片 😀")
    before, events = rows(world, "ai_op_queue"), rows(world, "ai_op_event", "sOpId")
    log = rows(world, "ai_audit_log", "sChain")
    done = archive(world)
    assert (done.rows, done.events, done.batches, done.left) == (3, len(events), 1, [])
    assert live(world) == set()
    assert rows(world, "ai_op_event", "sOpId") == []
    after = rows(world, "ai_op_queue_archive")
    assert [{n: v for n, v in row.items() if n not in OURS} for row in after] == before
    assert [(row["jDependsOn"], row["jExtra"]) for row in after] == [(None, None)] * 3
    assert rows(world, "ai_op_event_archive", "sOpId") == events
    with world.store.read() as connection:
        assert audit.verify(connection) == []
    told, *kept = rows(world, "ai_audit_log", "sChain")
    assert kept == log
    assert (told["sChain"], told["sAction"]) == ("/", "archive")
    assert json.loads(told["jDetail"]) == {"operations": 3, "byTenant": {"B001/S01": 3}}
    assert {world.effects(i) for i in ids} == {1}


def test_only_what_has_ended_and_long_ago_is_moved(world: World) -> None:
    old = ended(world, days_ago=31) + ended(world, days_ago=31)
    world.set(old[1:], sStatus="fail", iStatusCode=422)
    recent = ended(world, days_ago=29)
    waiting = [world.stage(code=code) for code in (C.SUBMITTED, C.WAITING_USER, C.WAITING_APPROVAL)]
    running, unknown = world.stage(), world.stage()
    world.set([running], iStatusCode=101)
    world.set([unknown], iStatusCode=102)
    legacy = ended(world, 2)
    world.set(legacy[:1], sStatus="executed", iStatusCode=None)
    world.set(legacy[1:], sStatus="executed", iStatusCode=200)
    age(world, [*waiting, running, unknown], 400)
    archive(world)
    assert archived(world) == set(old)
    assert live(world) == {*recent, *waiting, *legacy, running, unknown}


def test_a_dry_run_counts_and_changes_nothing(world: World) -> None:
    ids = ended(world, 3)
    before = both(world)
    assert archive(world, batch=2, dry_run=True).rows == 3
    assert (live(world), archived(world), both(world)) == (set(ids), set(), before)


def test_batches_are_bounded_and_each_is_told(world: World) -> None:
    ids = ended(world, 5)
    told: list[int] = []
    done = archive(world, batch=2, progress=lambda so_far: told.append(so_far.rows))
    assert (told, done.batches, archived(world)) == ([2, 4, 5], 3, set(ids))
    assert archive(world).rows == 0


def test_what_somebody_still_waits_for_stays_until_they_have_ended(world: World) -> None:
    (first,) = ended(world)
    waiting = world.stage(code=C.WAITING_OTHER, depends_on=(first,))
    assert archive(world).rows == 0
    world.settle(waiting)
    assert world.code(waiting) is C.EXECUTED
    age(world, [waiting], 31)
    assert archive(world).rows == 2
    kept = {row["sId"]: row["jDependsOn"] for row in rows(world, "ai_op_queue_archive")}
    assert (kept[first], json.loads(kept[waiting])) == (None, [first])
    assert rows(world, "ai_op_dependency", "sOpId") == []


def test_one_may_wait_for_what_was_archived_in_the_meantime(world: World) -> None:
    (done,), (failed,) = ended(world), ended(world)
    world.set([failed], sStatus="fail", iStatusCode=422)
    archive(world)
    goes_on = world.stage(code=C.WAITING_OTHER, depends_on=(done,))
    fails = world.stage(code=C.WAITING_OTHER, depends_on=(done, failed))
    world.settle(goes_on, fails)
    assert (world.code(goes_on), world.code(fails)) == (C.EXECUTED, C.DEPENDENCY_FAILED)


@contextmanager
def locked(world: World, op_id: str) -> Iterator[None]:
    """Somebody holds the row, as a retry or a claim does."""
    with world.queue.connect() as connection:
        connection.execute(select(op_queue.c.sId).where(op_queue.c.sId == op_id).with_for_update())
        yield
        connection.rollback()


def test_a_locked_row_is_passed_over_and_moved_the_next_time(world: World) -> None:
    if world.kind == "sqlite":
        pytest.skip("SQLite locks no rows")
    ids = sorted(ended(world, 3))
    with locked(world, ids[1]):
        assert archive(world).rows == 2
    assert live(world) == {ids[1]}
    assert archive(world).rows == 1


def test_it_works_beside_workers_and_other_archivers(world: World) -> None:
    old = ended(world, 16)
    fresh = world.confirm(*(world.row() for _ in range(8)))
    with ThreadPoolExecutor(3) as pool:
        archivers = [pool.submit(archive, world, batch=3) for _ in range(2)]
        working = pool.submit(world.settle, *fresh)
        moved = sum(one.result().rows for one in archivers)
        assert {o.status_code for o in working.result()} == {C.EXECUTED}
    assert (moved, archived(world), live(world)) == (16, set(old), set(fresh))
    ids, events = both(world)
    assert len(ids) == len(set(ids)) == 24
    assert len(events) == len(set(events))
    assert {world.effects(i) for i in ids} == {1}
    with world.store.read() as connection:
        assert audit.verify(connection) == []


def test_the_key_stays_protected_a_repeat_gets_the_first_result(world: World) -> None:
    (first,) = ended(world, idempotency_key="key-1")
    archive(world)
    same = world.stage(idempotency_key="key-1")
    world.run(same)
    again = world.read(same)
    assert (again.status_code, again.result_bill_id) == (C.EXECUTED_BEFORE, f"bill-{first}")
    assert (world.effects(first), world.effects(same)) == (1, 0)


def test_an_archived_id_written_again_by_foreign_sql_stays_in_the_queue(world: World) -> None:
    (first,) = ended(world)
    archive(world)
    before = rows(world, "ai_op_queue_archive")
    world.foreign(sId=first)
    world.settle(first)
    assert world.code(first) is C.CONFLICT  # the same key with other content
    age(world, [first], 31)
    done = archive(world)
    assert (done.rows, done.left) == (0, [])
    assert rows(world, "ai_op_queue_archive") == before
    assert world.effects(first) == 1


@contextmanager
def altered(world: World, *changes: str) -> Iterator[None]:
    """Every second of ``changes`` undoes the one before; {q} quotes."""
    quote = "`" if world.kind == "mariadb" else '"'

    def run(statements: tuple[str, ...]) -> None:
        with world.queue.begin() as connection:
            for statement in statements:
                connection.execute(text(statement.replace("{q}", quote)))

    run(changes[::2])
    try:
        yield
    finally:
        world.queue.dispose()
        run(changes[1::2])


def test_columns_of_an_adopted_table_that_are_not_ours_are_kept_by_name(world: World) -> None:
    names = (
        "fAmount NUMERIC(20, 6)",
        "{q}s 50% ä{q} VARCHAR(50)",
        "tSeen TIMESTAMP NULL",
        "sNone VARCHAR(5)",
    )
    changes = []
    for name in names:
        column = name.rpartition(" ")[0] if name.startswith("{q}") else name.split()[0]
        changes += [f"ALTER TABLE ai_op_queue ADD {name}", f"ALTER TABLE ai_op_queue DROP COLUMN {column}"]
    with altered(world, *changes):
        plain, full = sorted(ended(world, 2))
        quote = "`" if world.kind == "mariadb" else '"'
        fill = (
            "UPDATE ai_op_queue SET fAmount = 12345678901234.567890, tSeen = '2026-01-02 03:04:05',"
            " {q}s 50% ä{q} = '满 10%' WHERE {q}sId{q} = :id"
        )
        with world.queue.begin() as connection:
            connection.execute(text(fill.replace("{q}", quote)), {"id": full})
        assert archive(world).rows == 2
    kept = {row["sId"]: row["jExtra"] for row in rows(world, "ai_op_queue_archive")}
    assert kept[plain] is None
    extra = {name.casefold(): value for name, value in json.loads(kept[full]).items()}
    amount = extra.pop("famount")
    assert amount == ("12345678901234.567890" if world.kind != "sqlite" else 12345678901234.568)
    assert str(extra.pop("tseen")).replace("T", " ") == "2026-01-02 03:04:05"
    assert extra == {"s 50% ä": "满 10%"}


def test_a_row_that_does_not_fit_stays_and_holds_up_no_other(world: World) -> None:
    if world.kind == "sqlite":
        pytest.skip("SQLite keeps strings of any length")
    verb, type_ = ("MODIFY", "") if world.kind == "mariadb" else ("ALTER", "TYPE ")
    wide, narrow = (
        f"ALTER TABLE ai_op_queue {verb} {{q}}sTargetBillId{{q}} {type_}VARCHAR({n})"
        + (" NOT NULL DEFAULT ''" if world.kind == "mariadb" else "")
        for n in (500, 200)
    )
    ids = ended(world, 3)
    with altered(world, wide, narrow):
        world.set(ids[1:2], sTargetBillId="x" * 300)
        done = archive(world)
        assert (done.rows, done.left) == (2, [ids[1]])
        assert live(world) == {ids[1]}
        world.set(ids[1:2], sTargetBillId="")


def test_where_foreign_keys_point_at_the_queue_nothing_is_moved(world: World) -> None:
    ids = ended(world)
    kind = (
        "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" if world.kind == "mariadb" else "VARCHAR(64)"
    )
    child = f"CREATE TABLE child (op {kind}, FOREIGN KEY (op) REFERENCES ai_op_queue ({{q}}sId{{q}}) ON DELETE CASCADE)"
    with altered(world, child, "DROP TABLE child"):
        with pytest.raises(Refused) as refusal:
            archive(world)
        assert refusal.value.code is ErrorCode.STATE_CONFLICT
        assert "child" in refusal.value.message("en")
    assert live(world) == set(ids)
