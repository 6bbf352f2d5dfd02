"""Adopting ``ai_op_queue`` where one engine has something the others lack: triggers, views, engines, collations."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from migrations import run
from migrations.errors import MigrationRefused
from migrations.run import Tree
from staging.storage.engine import make_engine
from staging.storage.tables import op_queue
from tests.support.legacy_queue import AS_IN_THE_CONTRACT, NARROW, OLD, Shape

q = op_queue.c


def run_sql(url: str, *statements: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def read_sql(url: str, query: str) -> list[Any]:
    engine = make_engine(url)
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.exec_driver_sql(query)]
    engine.dispose()
    return rows


def make(url: str, shape: Shape, count: int = 3) -> None:
    engine = make_engine(url)
    shape.create(engine)
    shape.fill(engine, count)
    engine.dispose()


def test_sqlite_children_triggers_indexes_and_counters_survive(sqlite_database: str) -> None:
    make(sqlite_database, OLD)
    ids = [OLD.row(number)["sId"] for number in range(3)]
    run_sql(
        sqlite_database,
        "CREATE TABLE child (op CHAR(36) REFERENCES ai_op_queue (sId) ON DELETE CASCADE)",
        *(f"INSERT INTO child VALUES ('{op_id}')" for op_id in ids),
        "CREATE TABLE log (op TEXT)",
        "CREATE TRIGGER tell AFTER INSERT ON ai_op_queue BEGIN INSERT INTO log VALUES (NEW.sId); END",
        "CREATE VIEW waiting AS SELECT sId FROM ai_op_queue WHERE sStatus = 'pending'",
        "CREATE INDEX ix_agent ON ai_op_queue (sOpType) WHERE sStatus = 'pending'",
        f"DELETE FROM ai_op_queue WHERE sId = '{ids[2]}'",
    )
    for direction in (run.upgrade, run.downgrade, run.upgrade):
        direction(sqlite_database, Tree.QUEUE, "base" if direction is run.downgrade else "head")
        assert read_sql(sqlite_database, "SELECT op FROM child") == [(ids[0],), (ids[1],)]
        assert read_sql(sqlite_database, "SELECT op FROM log") == []
        assert read_sql(sqlite_database, "SELECT sId FROM waiting") == [(ids[0],)]
        objects = "SELECT name FROM sqlite_master WHERE name IN ('ix_agent', 'tell') ORDER BY name"
        assert read_sql(sqlite_database, objects) == [("ix_agent",), ("tell",)]
        assert read_sql(sqlite_database, "SELECT seq FROM sqlite_sequence") == [(3,)]
        assert read_sql(sqlite_database, "PRAGMA foreign_key_check") == []
        assert read_sql(sqlite_database, "PRAGMA integrity_check") == [("ok",)]


def test_a_strict_sqlite_table_stays_strict(sqlite_database: str) -> None:
    columns = ", ".join(f"{name} TEXT NOT NULL" for name in AS_IN_THE_CONTRACT.columns if name[0] == "s")
    run_sql(
        sqlite_database, f"CREATE TABLE ai_op_queue ({columns}, iStatusCode INT, bAutoExecute INT) STRICT"
    )
    run.upgrade(sqlite_database, Tree.QUEUE)
    engine = make_engine(sqlite_database)
    with engine.begin() as connection:
        AS_IN_THE_CONTRACT.insert(connection, 1)
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ai_op_queue SET iAttempt = 'many'")
    engine.dispose()


def test_postgres_a_view_keeps_a_column_narrow_and_the_operator_is_told(postgres_database: str) -> None:
    make(postgres_database, NARROW)
    run_sql(postgres_database, 'CREATE VIEW seen AS SELECT "sTargetFormId" FROM ai_op_queue')
    (note,) = [n for n in run.upgrade(postgres_database, Tree.QUEUE).notes if "sTargetFormId" in n.en]
    assert "stays as it is" in note.en
    assert "保持原样" in note.zh
    widths = (
        "SELECT column_name, character_maximum_length FROM information_schema.columns "
        "WHERE table_name = 'ai_op_queue' AND column_name IN ('sTargetFormId', 'sMakePerson') ORDER BY 1"
    )
    assert read_sql(postgres_database, widths) == [("sMakePerson", 64), ("sTargetFormId", 40)]


def test_postgres_a_padded_id_that_cannot_be_converted_is_refused(postgres_database: str) -> None:
    make(postgres_database, OLD)
    run_sql(postgres_database, 'CREATE VIEW seen AS SELECT "sId" FROM ai_op_queue')
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(postgres_database, Tree.QUEUE)
    assert "sId" in refusal.value.message("zh")
    assert read_sql(postgres_database, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [
        ("ai_op_queue",)
    ]


@pytest.mark.parametrize(
    ("column", "kind"),
    [("sId", "uuid"), ("bAutoExecute", "boolean"), ("iStatusCode", "text"), ("tCreateDate", "date")],
)
def test_postgres_types_our_statements_cannot_use_are_refused(
    column: str, kind: str, postgres_database: str
) -> None:
    shape = Shape({**AS_IN_THE_CONTRACT.columns, "tCreateDate": "TIMESTAMP", column: kind})
    make(postgres_database, shape, count=0)
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(postgres_database, Tree.QUEUE)
    assert f"Column {column} has the type" in refusal.value.message("en")
    assert f"列 {column} 的类型" in refusal.value.message("zh")


def test_mariadb_tables_without_transactions_are_refused(mariadb_database: str) -> None:
    shape = Shape(AS_IN_THE_CONTRACT.columns, options={"mariadb": " ENGINE=MyISAM"})
    make(mariadb_database, shape)
    with pytest.raises(MigrationRefused, match="ALTER TABLE ai_op_queue ENGINE=InnoDB"):
        run.upgrade(mariadb_database, Tree.QUEUE)
    assert read_sql(mariadb_database, "SHOW TABLES") == [("ai_op_queue",)]


def test_mariadb_a_key_others_refer_to_keeps_its_collation_and_the_operator_is_told(
    mariadb_database: str,
) -> None:
    make(mariadb_database, Shape(AS_IN_THE_CONTRACT.columns, AS_IN_THE_CONTRACT.rest, options=NARROW.options))
    run_sql(
        mariadb_database,
        "CREATE TABLE child (op VARCHAR(64) COLLATE utf8mb4_general_ci, FOREIGN KEY (op) REFERENCES ai_op_queue (sId))",
    )
    (note,) = run.upgrade(mariadb_database, Tree.QUEUE).notes
    assert "sId is part of a foreign key" in note.en
    assert "sId 参与外键" in note.zh
    collations = (
        "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() "
        "AND TABLE_NAME = 'ai_op_queue' AND COLUMN_NAME IN ('sId', 'sBrandsId') ORDER BY 1"
    )
    assert read_sql(mariadb_database, collations) == [
        ("sBrandsId", "utf8mb4_bin"),
        ("sId", "utf8mb4_general_ci"),
    ]


def test_mariadb_what_a_column_says_besides_its_type_is_kept(mariadb_database: str) -> None:
    make(mariadb_database, NARROW)
    run.upgrade(mariadb_database, Tree.QUEUE)
    ddl = read_sql(mariadb_database, "SHOW CREATE TABLE ai_op_queue")[0][1]
    binary = "`sBrandsId` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    assert f"{binary} NOT NULL COMMENT 'tenant, ''B''; not null'" in ddl
    assert "`sOpType` varchar(50) NOT NULL DEFAULT 'create'" in ddl
    assert "CHECK (json_valid(`sPayload`))" in ddl


def test_mariadb_what_is_added_takes_emoji_whatever_the_table_is_in(mariadb_database: str) -> None:
    make(mariadb_database, OLD)
    run.upgrade(mariadb_database, Tree.QUEUE)
    engine = make_engine(mariadb_database)
    with engine.begin() as connection:
        connection.execute(
            op_queue.update().values(sErrorMsg="🚚", sResultMsg="🚚", sPayload='"🚚"', sTraceId="🚚")
        )
        row = connection.execute(select(q.sErrorMsg, q.sResultMsg, q.sPayload, q.sTraceId).limit(1)).one()
    engine.dispose()
    assert tuple(row) == ("🚚", "🚚", '"🚚"', "🚚")
