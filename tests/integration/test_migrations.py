"""Both trees on three engines: equal to the tables, up and down, killed at every step, run by several at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, create_engine, delete, text
from sqlalchemy.exc import IntegrityError

from migrations import run
from migrations.errors import DatabaseUnreachable, MigrationRefused
from migrations.run import Tree
from staging.storage.engine import make_engine
from staging.storage.tables import metadata, op_queue_archive
from tests.databases import fresh_database
from tests.support.migration_killer import killed_at_each_change
from tests.support.processes import ROOT, clean_environment
from tests.support.schema import shape, tables
from workers.erp.tables import erp_metadata

TREES = {Tree.QUEUE: metadata, Tree.ERP: erp_metadata}
_UPGRADE = "import sys; from migrations import run; print(run.upgrade(sys.argv[1], 'queue').before)"


@pytest.fixture(params=list(Tree))
def tree(request: pytest.FixtureRequest) -> Tree:
    return Tree(request.param)


def names(tree: Tree) -> list[str]:
    return sorted(TREES[tree].tables)


@contextmanager
def created_directly(kind: str, folder: Path, schema: MetaData) -> Iterator[Engine]:
    """A database made by ``metadata.create_all``."""
    with fresh_database(kind, folder) as url:
        engine = make_engine(url)
        schema.create_all(engine)
        yield engine
        engine.dispose()


def test_migrations_and_tables_are_the_same_schema(
    tree: Tree, database_kind: str, database_url: str, engine: Engine, tmp_path: Path
) -> None:
    run.upgrade(database_url, tree)
    with created_directly(database_kind, tmp_path, TREES[tree]) as other:
        assert shape(engine, names(tree)) == shape(other, names(tree))


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE ai_op_event ADD COLUMN {q}sMore{q} VARCHAR(5)",
        "DROP INDEX ix_ai_op_queue_preparation{on}",
        "CREATE INDEX ix_more ON ai_op_queue ({q}sSeal{q})",
    ],
)
def test_the_comparison_sees_a_difference(
    change: str, database_kind: str, database_url: str, engine: Engine, tmp_path: Path
) -> None:
    run.upgrade(database_url, Tree.QUEUE)
    quote, on = ("`", " ON ai_op_queue") if database_kind == "mariadb" else ('"', "")
    with engine.begin() as connection:
        connection.exec_driver_sql(change.format(q=quote, on=on))
    with created_directly(database_kind, tmp_path, metadata) as other:
        assert shape(engine, names(Tree.QUEUE)) != shape(other, names(Tree.QUEUE))


def test_up_down_up_leaves_the_same_schema_and_down_leaves_nothing(
    tree: Tree, database_url: str, engine: Engine
) -> None:
    first = run.upgrade(database_url, tree)
    before = shape(engine, names(tree))
    assert (first.before, first.after) == (None, tree.head) == (None, run.current(database_url, tree))

    down = run.downgrade(database_url, tree, "base")
    assert (down.before, down.after) == (tree.head, None)
    assert tables(engine) == set()

    assert run.upgrade(database_url, tree).after == tree.head
    assert shape(engine, names(tree)) == before


def test_each_revision_can_be_stepped_down_and_up_again(database_url: str, engine: Engine) -> None:
    run.upgrade(database_url, Tree.QUEUE)
    everything = tables(engine)
    later = [script.revision for script in Tree.QUEUE.scripts.walk_revisions()][1:]
    assert later[-1] == "0001"
    assert [run.downgrade(database_url, Tree.QUEUE, "-1").after for _ in later] == later
    archive = {"ai_op_queue_archive", "ai_op_event_archive"}
    journal = {"ai_op_event", "ai_audit_log", "ai_audit_head"}
    assert everything - tables(engine) == {"ai_op_dependency", *journal, *archive}
    assert run.upgrade(database_url, Tree.QUEUE, "0002").after == "0002"
    assert everything - tables(engine) == {"ai_op_dependency", *archive}
    assert run.upgrade(database_url, Tree.QUEUE).before == "0002"
    assert tables(engine) == everything


def test_a_downgrade_that_would_delete_archived_rows_is_refused(database_url: str, engine: Engine) -> None:
    run.upgrade(database_url, Tree.QUEUE)
    with engine.begin() as connection:
        connection.execute(op_queue_archive.insert().values(sId="op-1", sStatus="success"))
    before = shape(engine, names(Tree.QUEUE))
    newer = len([*Tree.QUEUE.scripts.walk_revisions(base="0005")])
    for revision in ("0004", "base", f"-{newer}"):
        with pytest.raises(MigrationRefused, match="1 archived rows"):
            run.downgrade(database_url, Tree.QUEUE, revision)
        # The MySQL family does not roll back the indexes that newer revisions have dropped by then.
        assert shape(engine, names(Tree.QUEUE)) == before
    assert run.current(database_url, Tree.QUEUE) == Tree.QUEUE.head
    with engine.begin() as connection:
        assert connection.execute(delete(op_queue_archive)).rowcount == 1
    run.downgrade(database_url, Tree.QUEUE, "base")
    assert tables(engine) == set()


def test_both_trees_live_in_one_database_and_go_their_own_ways(database_url: str, engine: Engine) -> None:
    run.upgrade(database_url, Tree.QUEUE)
    run.upgrade(database_url, Tree.ERP)
    assert tables(engine) >= {
        *names(Tree.QUEUE),
        *names(Tree.ERP),
        "ai_op_alembic_queue",
        "ai_op_alembic_erp",
    }
    run.downgrade(database_url, Tree.QUEUE, "base")
    assert tables(engine) == {*names(Tree.ERP), "ai_op_alembic_erp"}
    assert run.current(database_url, Tree.QUEUE) is None
    assert run.current(database_url, Tree.ERP) == Tree.ERP.head


def test_an_upgrade_killed_after_any_change_is_finished_by_the_next(
    tree: Tree, database_kind: str, database_url: str, engine: Engine, tmp_path: Path
) -> None:
    deaths = killed_at_each_change("upgrade", database_url, tree)
    assert deaths >= (6 if tree is Tree.QUEUE and database_kind == "mariadb" else 1)
    assert run.current(database_url, tree) == tree.head
    with created_directly(database_kind, tmp_path, TREES[tree]) as other:
        assert shape(engine, names(tree)) == shape(other, names(tree))


def test_a_downgrade_killed_after_any_change_is_finished_by_the_next(
    tree: Tree, database_url: str, engine: Engine
) -> None:
    run.upgrade(database_url, tree)
    assert killed_at_each_change("downgrade", database_url, tree, "base") >= 1
    assert tables(engine) == set()


def test_of_several_processes_that_upgrade_at_once_one_does_and_the_others_find_it_done(
    database_url: str, engine: Engine
) -> None:
    command = [sys.executable, "-c", _UPGRADE, database_url]
    started = [
        subprocess.Popen(
            command, env=clean_environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=90) for process in started]
    assert [process.returncode for process in started] == [0] * 3, ended
    assert sorted(out.strip() for out, _ in ended) == [Tree.QUEUE.head] * 2 + ["None"]
    assert tables(engine) >= set(names(Tree.QUEUE))


def test_a_row_of_plain_sql_gets_every_default(database_kind: str, database_url: str, engine: Engine) -> None:
    """The starred columns and bAutoExecute, through the bare driver, as another program would."""
    run.upgrade(database_url, Tree.QUEUE)
    starred: dict[str, Any] = {
        "sId": "op-1",
        "sBrandsId": "B1",
        "sSubsidiaryId": "S1",
        "sMakePerson": "张三",
        "sOpType": "create",
        "sTargetFormId": "quotation",
        "sPayload": '{"sRemark": "加急🚚"}',
        "sStatus": "pending",
        "iStatusCode": 100,
        "bAutoExecute": 1,
    }
    insert_plainly(database_url, starred)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM ai_op_queue")).mappings().one()
        age = connection.execute(text(_AGE_S[database_kind])).scalar_one()
    assert {name: row[name] for name in starred} == starred
    zeros = {"iFlowStep", "iPriority", "iAttempt", "iSeq", "bNeedsApproval", "bAllowDuplicate"}
    assert {name for name, value in row.items() if value == 0} == zeros
    assert {name for name, value in row.items() if value == ""} == {
        "sCommandType",
        "sTargetModuleId",
        "sTargetTable",
        "sTargetBillId",
        "sPayloadHash",
        "sTargetVersion",
        "sConversationId",
        "sTraceId",
        "sFlowId",
        "sSnapshotHash",
        "sSeal",
        "sErrorCode",
    }
    assert (row["iMaxAttempts"], row["sLocale"], row["sIdempotencyKey"]) == (5, "zh", None)
    assert 0 <= age < 30
    with pytest.raises(IntegrityError), engine.begin() as connection:  # the key is there
        connection.execute(text("INSERT INTO ai_op_queue SELECT * FROM ai_op_queue"))


_AGE_S = {
    "sqlite": """SELECT (julianday('now') - julianday("tCreateDate")) * 86400 FROM ai_op_queue""",
    "postgresql": """SELECT extract(epoch FROM clock_timestamp() - "tCreateDate") FROM ai_op_queue""",
    "mariadb": "SELECT TIMESTAMPDIFF(MICROSECOND, tCreateDate, UTC_TIMESTAMP(6)) / 1e6 FROM ai_op_queue",
}


def insert_plainly(database_url: str, row: dict[str, Any], table: str = "ai_op_queue") -> None:
    """INSERT through the driver alone, in a session in Shanghai: none of our settings, types or statements."""
    engine = create_engine(database_url)
    connection = engine.raw_connection()
    quote, place = ("`", "%s") if engine.dialect.name in ("mysql", "mariadb") else ('"', "%s")
    place = "?" if engine.dialect.name == "sqlite" else place
    columns = ", ".join(f"{quote}{name}{quote}" for name in row)
    cursor = connection.cursor()
    if engine.dialect.name == "postgresql":
        cursor.execute("SET TIME ZONE 'Asia/Shanghai'")
    elif engine.dialect.name != "sqlite":
        cursor.execute("SET time_zone = '+08:00'")
    cursor.execute(
        f"INSERT INTO {table} ({columns}) VALUES ({', '.join([place] * len(row))})", tuple(row.values())
    )
    connection.commit()
    connection.close()
    engine.dispose()


def test_a_foreign_table_under_one_of_our_names_is_refused_and_left_alone(
    database_url: str, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE ai_op_ledger (id INTEGER)"))
        connection.execute(text("INSERT INTO ai_op_ledger VALUES (7)"))
    with pytest.raises(MigrationRefused) as refusal:
        run.upgrade(database_url, Tree.ERP)
    assert "ai_op_ledger" in refusal.value.message("zh")
    assert "sIdempotencyKey" in refusal.value.message("en")
    assert tables(engine) == {"ai_op_ledger"}
    with engine.connect() as connection:
        assert connection.execute(text("SELECT id FROM ai_op_ledger")).scalars().all() == [7]


@pytest.mark.parametrize("revision", ["0099", "nonsense"])
def test_an_unknown_revision_is_refused_with_the_known_ones(
    revision: str, database_url: str, engine: Engine
) -> None:
    with pytest.raises(MigrationRefused, match="0001, 0002, 0003"):
        run.upgrade(database_url, Tree.QUEUE, revision)
    assert tables(engine) == set()


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_an_unreachable_server_is_said_to_be_so(scheme: str) -> None:
    with pytest.raises(DatabaseUnreachable) as error:
        run.upgrade(f"{scheme}://nobody@127.0.0.1:1/nothing", Tree.QUEUE)
    assert error.value.http_status == 503
    assert "无法连接" in error.value.message("zh")
    assert "cannot be reached" in error.value.message("en")


def test_migrations_run_from_an_installed_wheel(tmp_path: Path) -> None:
    """No source tree, no ini file: just the wheel's content, in another directory."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    site, work = tmp_path / "site", tmp_path / "work"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(site)], check=True, timeout=60)
    work.mkdir()
    code = (
        "import migrations, sys; from migrations import run; "
        "print(migrations.__file__, *(run.upgrade('sqlite:///q.db', tree).after for tree in run.Tree))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=work,
        env={**clean_environment({}), "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == [
        str(site / "migrations" / "__init__.py"),
        Tree.QUEUE.head,
        Tree.ERP.head,
    ], done.stderr
    assert (work / "q.db").exists()
