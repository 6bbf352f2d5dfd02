"""An ``ai_op_queue`` that an agent already writes is taken over with all it holds, and given back."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, null, select
from sqlalchemy.exc import IntegrityError

from migrations import run
from migrations.errors import MigrationRefused
from migrations.run import Tree
from staging.storage.dialect import db_now
from staging.storage.engine import make_engine
from staging.storage.tables import op_queue
from tests.support.legacy_queue import (
    AS_IN_THE_CONTRACT,
    NARROW,
    OLD,
    SHAPES,
    STATUSES,
    Shape,
    kind_of,
)
from tests.support.migration_killer import killed_at_each_change
from tests.support.schema import shape as schema_shape, tables
from tests.support.waiting import wait_until

q = op_queue.c
FOREIGN_ROW, OWN_ID = 20_000, "o" * 64


@pytest.fixture(params=SHAPES, ids=str)
def legacy(request: pytest.FixtureRequest) -> Shape:
    return SHAPES[request.param]


def own_row(op_id: str = OWN_ID, **changes: Any) -> dict[str, Any]:
    """A row as Opstage writes it: through its table, with values as long as the contract allows."""
    return {
        "sId": op_id,
        "sBrandsId": "B002",
        "sSubsidiaryId": "S01",
        "sMakePerson": "m" * 64,
        "sOpType": "cancelExamine",
        "sTargetFormId": "f" * 100,
        "sTargetBillId": "b" * 200,
        "sPayload": '{"sRemark":"' + "大" * 70_000 + '"}',
        "sSourceRef": None,
        "sStatus": "success",
        "iStatusCode": 201,
        "bAutoExecute": 1,
        "sIdempotencyKey": "k" * 128,
        "sResultMsg": None,
        "sErrorMsg": "错" * 70_000,
    } | changes


def structure(engine: Engine, shape: Shape) -> dict[str, Any]:
    """What a downgrade has to restore: all but the width, collation and laxity that may stay."""
    inspector = inspect(engine)
    whole = schema_shape(engine, ["ai_op_queue"])["ai_op_queue"]
    to_the_letter = kind_of(engine) == "sqlite" and not shape.loosened
    return {
        "columns": [
            (c["name"], c["nullable"] or c["name"] in shape.loosened, c["default"])
            for c in inspector.get_columns("ai_op_queue")
        ],
        **{part: whole[part] for part in ("primary key", "unique", "checks", "indexes")},
        "tables": tables(engine),
        "ddl": [re.sub(r"( COLLATE NOCASE)?\s+", " ", line) for line in whole["ddl"]]
        if to_the_letter
        else None,
    }


@pytest.mark.parametrize("count", [0, 17])
def test_a_table_is_adopted_and_given_back_with_all_it_holds(
    legacy: Shape, count: int, database_url: str, engine: Engine
) -> None:
    legacy.create(engine)
    legacy.fill(engine, count)
    before, content = structure(engine, legacy), legacy.content(engine)

    result = run.upgrade(database_url, Tree.QUEUE)
    assert result.after == Tree.QUEUE.head
    assert legacy.content(engine) == content
    there = {column["name"] for column in inspect(engine).get_columns("ai_op_queue")}
    assert there == {*legacy.columns, *op_queue.columns.keys()}

    with engine.begin() as connection:
        legacy.insert(connection, FOREIGN_ROW)  # the agent goes on as before
        connection.execute(op_queue.insert().values(own_row()))  # and so do we
    assert run.upgrade(database_url, Tree.QUEUE).before == Tree.QUEUE.head

    run.downgrade(database_url, Tree.QUEUE, "base")
    assert structure(engine, legacy) == before
    left = legacy.content(engine)
    assert [row for row in left if row["sId"] not in (OWN_ID, legacy.row(FOREIGN_ROW)["sId"])] == content
    assert len(left) == count + 2

    assert run.upgrade(database_url, Tree.QUEUE).after == Tree.QUEUE.head
    assert [row for row in legacy.content(engine) if row["sId"] in {r["sId"] for r in content}] == content


def test_what_was_waiting_waits_still_and_what_is_legacy_stays_so(
    legacy: Shape, database_url: str, engine: Engine
) -> None:
    legacy.create(engine)
    legacy.fill(engine, 17)
    run.upgrade(database_url, Tree.QUEUE)
    with engine.connect() as connection:
        rows = connection.execute(select(op_queue).order_by(q.sId)).mappings().all()
        due = connection.execute(
            select(q.sId).where(q.sStatus == "pending", q.iStatusCode == 100, q.tCreateDate <= db_now())
        ).scalars()
        waiting = set(due)
    assert [row["sStatus"] for row in rows] == [STATUSES[i % len(STATUSES)] for i in range(17)]
    assert [row["sMakePerson"] for row in rows] == [f"user{i % 7}" for i in range(17)]
    assert {(row["iSeq"], row["iAttempt"], row["iMaxAttempts"], row["sLocale"]) for row in rows} == {
        (0, 0, 5, "zh")
    }
    numbered = "iStatusCode" in legacy.columns
    assert waiting == ({legacy.row(i)["sId"] for i in (0, 8, 16)} if numbered else set())
    if not numbered:  # nobody ever said 100: such a row is shown, not run
        assert {row["iStatusCode"] for row in rows} == {None}


def test_ten_thousand_rows_are_adopted(legacy: Shape, database_url: str, engine: Engine) -> None:
    legacy.create(engine)
    legacy.fill(engine, 10_000)
    content = legacy.content(engine)
    run.upgrade(database_url, Tree.QUEUE)
    assert legacy.content(engine) == content
    with engine.connect() as connection:
        makers = connection.execute(select(q.sMakePerson).distinct()).scalars().all()
    assert sorted(makers) == [f"user{i}" for i in range(7)]
    run.downgrade(database_url, Tree.QUEUE, "base")
    assert legacy.content(engine) == content


def test_keys_that_differ_in_case_are_two_and_equal_ones_are_refused(
    legacy: Shape, database_url: str, engine: Engine
) -> None:
    legacy.create(engine)
    run.upgrade(database_url, Tree.QUEUE)
    with engine.begin() as connection:
        connection.execute(op_queue.insert().values(own_row("a", sIdempotencyKey="k")))
        connection.execute(op_queue.insert().values(own_row("A", sIdempotencyKey="K")))
        found = connection.execute(select(q.sId).where(q.sBrandsId == "b002")).scalars().all()
    assert found == []  # another tenant, however similar its name
    for same in (own_row("c", sIdempotencyKey="k"), own_row("a", sIdempotencyKey="other")):
        with pytest.raises(IntegrityError), engine.begin() as connection:
            connection.execute(op_queue.insert().values(same))


def test_a_row_of_the_agent_gets_the_defaults_of_the_new_columns(
    legacy: Shape, database_url: str, engine: Engine
) -> None:
    legacy.create(engine)
    run.upgrade(database_url, Tree.QUEUE)
    with engine.begin() as connection:
        op_id = legacy.insert(connection, 0)
        row = connection.execute(select(op_queue).where(q.sId == op_id)).mappings().one()
        age = connection.execute(select(q.sId).where(q.tCreateDate <= db_now())).scalars().all()
    assert sorted(row["sPayload"].replace(" ", "")) == sorted('{"sRemark":"第0单","dPrice":12.50}')
    assert (row["iMaxAttempts"], row["sLocale"], row["sIdempotencyKey"]) == (5, "zh", None)
    assert age == [op_id]
    nulls = {name for name, value in row.items() if value is None}
    optional = {c.name for c in op_queue.columns if c.nullable} | {"sTargetBillId"}
    assert nulls <= optional


def test_an_adoption_killed_after_any_change_is_finished_by_the_next(
    legacy: Shape, database_kind: str, database_url: str, engine: Engine
) -> None:
    legacy.create(engine)
    legacy.fill(engine, 17)
    before, content = structure(engine, legacy), legacy.content(engine)
    run.upgrade(database_url, Tree.QUEUE)
    wanted = schema_shape(engine, ["ai_op_queue"])
    run.downgrade(database_url, Tree.QUEUE, "base")

    assert killed_at_each_change("upgrade", database_url, Tree.QUEUE) >= 3
    assert schema_shape(engine, ["ai_op_queue"]) == wanted
    assert legacy.content(engine) == content
    assert killed_at_each_change("downgrade", database_url, Tree.QUEUE, "base") >= 3
    assert structure(engine, legacy) == before
    assert legacy.content(engine) == content


def make_old(engine: Engine, keys: dict[int, str | None]) -> None:
    """The table ``OLD`` with rows of these numbers and idempotency keys."""
    OLD.create(engine)
    OLD.fill(engine, 1 + max(keys))
    for number, key in keys.items():
        set_key(engine, number, key)


def set_key(engine: Engine, number: int, key: str | None) -> None:
    with engine.begin() as connection:
        row = op_queue.update().where(q.sId == OLD.row(number)["sId"])
        assert connection.execute(row.values(sIdempotencyKey=key)).rowcount == 1


def test_duplicate_keys_are_named_and_nothing_is_changed(database_url: str, engine: Engine) -> None:
    make_old(engine, {0: None, 1: "twice", 2: "twice", 3: "once", 4: None})
    before = structure(engine, OLD)
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(database_url, Tree.QUEUE)
    for locale, words in (("zh", "幂等键重复"), ("en", "Duplicate idempotency key")):
        message = refusal.value.message(locale)
        assert words in message
        assert "twice" in message
        assert "once" not in message
        assert all(OLD.row(number)["sId"] in message for number in (1, 2))
    assert structure(engine, OLD) == before
    set_key(engine, 2, None)  # as the message says
    assert run.upgrade(database_url, Tree.QUEUE).after == Tree.QUEUE.head


def test_keys_that_differ_in_case_only_are_no_duplicates(database_url: str, engine: Engine) -> None:
    make_old(engine, {0: "Key", 1: "KEY"})
    assert run.upgrade(database_url, Tree.QUEUE).after == Tree.QUEUE.head


def test_ids_that_are_missing_or_double_are_refused(database_url: str, engine: Engine) -> None:
    NARROW.create(engine)
    NARROW.fill(engine, 3)
    with engine.begin() as connection:
        NARROW.insert(connection, 1)
        connection.execute(op_queue.update().where(q.sId == NARROW.row(2)["sId"]).values(sId=null()))
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(database_url, Tree.QUEUE)
    assert NARROW.row(1)["sId"] in refusal.value.message("zh")
    assert "1 rows have no sId" in refusal.value.message("en")
    assert tables(engine) == {"ai_op_queue"}


def test_a_table_that_is_no_queue_is_refused_with_all_reasons(database_url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE ai_op_queue (id INTEGER, name VARCHAR(10))")
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(database_url, Tree.QUEUE)
    for column in ("sId", "sBrandsId", "sMakePerson", "sPayload", "sStatus"):
        assert f"lacks the column {column}" in refusal.value.message("en")
        assert f"缺少必需的列 {column}" in refusal.value.message("zh")
    assert tables(engine) == {"ai_op_queue"}


def test_a_view_is_refused(database_url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE other (id INTEGER)")
        connection.exec_driver_sql("CREATE VIEW ai_op_queue AS SELECT * FROM other")
    with pytest.raises(MigrationRefused, match="is a view"):
        run.upgrade(database_url, Tree.QUEUE)


def test_a_database_made_directly_is_adopted_without_a_change(database_url: str, engine: Engine) -> None:
    op_queue.metadata.create_all(engine)
    before = schema_shape(engine, ["ai_op_queue"])
    run.upgrade(database_url, Tree.QUEUE)
    assert schema_shape(engine, ["ai_op_queue"]) == before
    run.downgrade(database_url, Tree.QUEUE, "base")
    assert schema_shape(engine, ["ai_op_queue"])["ai_op_queue"]["columns"] == before["ai_op_queue"]["columns"]


def test_an_agent_may_write_all_the_while(database_url: str, engine: Engine) -> None:
    AS_IN_THE_CONTRACT.create(engine)
    AS_IN_THE_CONTRACT.fill(engine, 2_000)
    done = threading.Event()
    written: list[str] = []

    def write() -> None:
        other = make_engine(database_url, lock_timeout_s=30, statement_timeout_s=30)
        while not done.is_set() or len(written) < 5:
            with other.begin() as connection:
                written.append(AS_IN_THE_CONTRACT.insert(connection, FOREIGN_ROW + len(written)))
        other.dispose()

    with ThreadPoolExecutor(1) as pool:
        agent = pool.submit(write)
        wait_until(lambda: written or agent.done(), 10, "the agent writes")
        run.upgrade(database_url, Tree.QUEUE)
        run.downgrade(database_url, Tree.QUEUE, "base")
        run.upgrade(database_url, Tree.QUEUE)
        done.set()
        agent.result(timeout=30)
    ids = {row["sId"] for row in AS_IN_THE_CONTRACT.content(engine)}
    assert set(written) <= ids
    assert len(ids) == 2_000 + len(written)
