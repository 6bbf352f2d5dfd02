"""``opstage db`` as an operator runs it."""

from __future__ import annotations

from pathlib import Path

from migrations.run import Tree
from staging.storage.engine import make_engine
from tests.support.cli import opstage
from tests.support.legacy_queue import OLD

QUEUE, ERP = Tree.QUEUE.head, Tree.ERP.head


def test_upgrade_current_and_downgrade_tell_where_the_databases_are(
    sqlite_database: str, tmp_path: Path
) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": sqlite_database,
        "OPSTAGE_ERP_DATABASE_URL": f"sqlite:///{tmp_path / 'erp.db'}",
    }
    before = opstage(tmp_path, env, "db", "current", "--json")
    assert [(row["tree"], row["current"], row["upToDate"]) for row in before.json()] == [
        ("queue", None, False),
        ("erp", None, False),
    ]
    up = opstage(tmp_path, env, "db", "upgrade")
    assert up.code == 0, up.err
    assert up.out.splitlines() == [f"queue: - → {QUEUE}", f"erp: - → {ERP}"]
    again = opstage(tmp_path, env, "db", "upgrade", "--json")
    assert [(row["tree"], row["before"], row["after"]) for row in again.json()] == [
        ("queue", QUEUE, QUEUE),
        ("erp", ERP, ERP),
    ]
    unasked = opstage(tmp_path, env, "db", "downgrade", "base", "--tree", "queue")
    assert unasked.code == 1
    down = opstage(tmp_path, env, "db", "downgrade", "base", "--tree", "queue", "--yes", "--json")
    assert down.json() == [{"tree": "queue", "before": QUEUE, "after": None, "notes": []}]
    after = opstage(tmp_path, env, "db", "current")
    assert after.out.splitlines() == [
        f"queue: (none) / {QUEUE}  needs an upgrade",
        f"erp: {ERP} / {ERP}  up to date",
    ]


def test_a_refusal_is_told_in_the_users_language_and_exits_1(sqlite_database: str, tmp_path: Path) -> None:
    engine = make_engine(sqlite_database)
    OLD.create(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE ai_op_queue DROP COLUMN sPayload")
    engine.dispose()
    env = {"OPSTAGE_DATABASE_URL": sqlite_database}
    english = opstage(tmp_path, env, "db", "upgrade")
    assert english.code == 1
    assert "lacks the column sPayload" in english.err
    chinese = opstage(tmp_path, {**env, "OPSTAGE_LOCALE": "zh"}, "db", "upgrade", "--json")
    assert chinese.code == 1
    assert "缺少必需的列 sPayload" in chinese.json()["error"]["message"]


def test_wrong_usage_exits_2_and_an_unreachable_server_3(tmp_path: Path) -> None:
    env = {"OPSTAGE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    assert opstage(tmp_path, env, "db", "upgrade", "--revision", "0001").code == 2
    assert opstage(tmp_path, env, "db", "downgrade", "base", "--tree", "all", "--yes").code == 2
    unreachable = opstage(tmp_path, env, "db", "current")
    assert unreachable.code == 3
    assert "cannot be reached" in unreachable.err
