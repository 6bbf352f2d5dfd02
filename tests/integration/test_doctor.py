"""``opstage doctor`` on real servers: healthy ones, misconfigured ones, and ones that do not answer."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, text, update

from migrations.run import Tree, upgrade
from staging.bootstrap import open_dispatcher
from staging.embedded.runtime import announced
from staging.services.doctor import LIMIT_S, Finding, Level, diagnose
from staging.settings import Settings
from staging.storage.backlog import unswept_s
from staging.storage.dialect import db_now_plus
from staging.storage.engine import make_engine
from staging.storage.tables import op_queue
from tests.databases import fresh_database
from tests.support.cli import opstage, opstage_here
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedPostgres, EmbeddedRedis, open_folder, private_postgres_bin
from tests.support.processes import LoggedProcess, settings_from
from tests.support.queue_rows import foreign_insert
from tests.support.waiting import wait_until
from workers.erp.demo.schema import create_demo

Found = dict[tuple[str, str], Finding]
BOTH = (Tree.QUEUE, Tree.ERP)


def look(env: dict[str, str]) -> Found:
    """Findings by service and check; the form catalogue is said to fit."""
    return {(f.service, f.check): f for f in diagnose(settings_from(env), list, environment={})}


def problems(found: Found) -> list[tuple[str, str]]:
    return [key for key, finding in found.items() if finding.level is Level.PROBLEM]


@pytest.fixture
def migrated(database_url: str) -> str:
    """A database of each kind with both trees."""
    for tree in BOTH:
        upgrade(database_url, tree)
    return database_url


@pytest.fixture
def migrated_sqlite(sqlite_database: str) -> str:
    """The quickest database that is as it should be."""
    for tree in BOTH:
        upgrade(sqlite_database, tree)
    return sqlite_database


@contextmanager
def engine_of(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def execute(url: str, statement: str) -> None:
    with engine_of(url) as engine, engine.begin() as connection:
        connection.execute(text(statement))


# --- as it should be -----------------------------------------------------------------------------------------------


def test_nothing_is_wrong_with_a_fresh_set_on_any_database(
    migrated: str, database_kind: str, redis_url: str, tmp_path: Path
) -> None:
    found = look(
        {"OPSTAGE_DATABASE_URL": migrated, "OPSTAGE_REDIS_URL": redis_url, "OPSTAGE_SEAL_KEY": "k" * 32}
    )
    assert problems(found) == []
    assert found["queue", "schema"].level is Level.OK
    assert found["erp", "schema"].level is Level.OK
    assert found["operations", "counts"].found_text("en") == "no operations"
    assert found["redis", "maxmemory_policy"].found == "noeviction"
    assert found["redis", "password"].level is Level.OK
    assert found["broker", "reachable"].level is Level.OK
    assert found["forms", "catalogue"].level is Level.OK
    if database_kind == "sqlite":
        assert found["queue", "production"].level is Level.WARNING
        assert found["queue", "journal_mode"].found == "wal"
    else:
        assert found["queue", "isolation_level"].found == "READ COMMITTED"
        assert found["queue", "timezone"].level is Level.OK
        assert found["queue", "clock_offset"].level is Level.OK
        assert found["queue", "id_collation"].level is Level.OK
    if database_kind == "mariadb":
        assert [found["queue", f"charset_{n}"].level for n in ("database", "connection")] == [Level.OK] * 2
        assert found["queue", "galera"].level is Level.OK


def test_every_finding_speaks_both_languages_and_says_what_to_do(redis_url: str, tmp_path: Path) -> None:
    env = {"OPSTAGE_DATABASE_URL": f"sqlite:///{tmp_path}/none.db", "OPSTAGE_REDIS_URL": redis_url}
    findings = diagnose(settings_from(env), environment={"FLOWER_UNAUTHENTICATED_API": "true"})
    assert {f.check for f in findings if f.level is Level.PROBLEM} >= {
        "reachable",
        "flower_unauthenticated_api",
    }
    for finding in findings:
        assert finding.what.zh
        assert finding.what.en
        if finding.level in (Level.WARNING, Level.PROBLEM):
            assert finding.todo is not None, finding


# --- databases -----------------------------------------------------------------------------------------------------


def test_a_database_without_tables_is_told_to_be_upgraded(
    database_url: str, database_kind: str, redis_url: str
) -> None:
    if database_kind == "sqlite":
        execute(database_url, "CREATE TABLE other (x INTEGER)")
    found = look({"OPSTAGE_DATABASE_URL": database_url, "OPSTAGE_REDIS_URL": redis_url})
    assert problems(found) == [("queue", "schema"), ("erp", "schema")]
    todo = found["queue", "schema"].todo
    assert todo is not None
    assert "opstage db upgrade" in todo.en
    assert ("operations", "counts") not in found


def test_a_missing_sqlite_file_is_told_and_not_created(redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "none.db"
    found = look({"OPSTAGE_DATABASE_URL": f"sqlite:///{path}", "OPSTAGE_REDIS_URL": redis_url})
    assert problems(found) == [("queue", "reachable")]
    assert str(path) in found["queue", "reachable"].found_text("en")
    assert not path.parent.exists()


def test_two_urls_of_one_database_are_recognised(migrated: str, database_kind: str, redis_url: str) -> None:
    other = (
        migrated.replace("127.0.0.1", "localhost") if database_kind != "sqlite" else f"{migrated}?timeout=5"
    )
    found = look(
        {"OPSTAGE_DATABASE_URL": migrated, "OPSTAGE_ERP_DATABASE_URL": other, "OPSTAGE_REDIS_URL": redis_url}
    )
    assert found["settings", "same_database"].level is Level.WARNING
    assert found["erp", "schema"].level is Level.OK


def test_two_databases_on_one_server_are_not_taken_for_one(redis_url: str, tmp_path: Path) -> None:
    with fresh_database("mariadb", tmp_path) as queue, fresh_database("mariadb", tmp_path) as erp:
        found = look(
            {"OPSTAGE_DATABASE_URL": queue, "OPSTAGE_ERP_DATABASE_URL": erp, "OPSTAGE_REDIS_URL": redis_url}
        )
    assert found["erp", "reachable"].level is Level.OK
    assert ("settings", "same_database") not in found


def test_mariadb_with_a_narrow_charset_and_a_loose_collation_is_a_problem(
    mariadb_database: str, redis_url: str
) -> None:
    for tree in BOTH:
        upgrade(mariadb_database, tree)
    name = mariadb_database.rpartition("/")[2]
    execute(mariadb_database, f"ALTER DATABASE {name} CHARACTER SET latin1")
    execute(
        mariadb_database,
        "ALTER TABLE ai_op_event MODIFY sOpId VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,"
        " MODIFY sMessage LONGTEXT CHARACTER SET utf8mb3",
    )
    execute(mariadb_database, "ALTER TABLE ai_op_dependency ENGINE=Aria")
    found = look({"OPSTAGE_DATABASE_URL": mariadb_database, "OPSTAGE_REDIS_URL": redis_url})
    assert sorted(problems(found)) == [
        ("queue", "charset_database"),
        ("queue", "id_collation"),
        ("queue", "storage_engine"),
        ("queue", "text_charset"),
    ]
    assert found["queue", "id_collation"].found == "ai_op_event.sOpId utf8mb4_general_ci"
    assert "ai_op_event.sMessage utf8mb3" in found["queue", "text_charset"].found_text("en")
    assert found["queue", "storage_engine"].found == "ai_op_dependency Aria"


def test_a_nondeterministic_collation_on_postgresql_is_a_problem(
    postgres_database: str, redis_url: str
) -> None:
    for tree in BOTH:
        upgrade(postgres_database, tree)
    execute(
        postgres_database,
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    )
    execute(postgres_database, 'ALTER TABLE ai_op_ledger ALTER "sOpId" TYPE varchar(64) COLLATE loose')
    found = look({"OPSTAGE_DATABASE_URL": postgres_database, "OPSTAGE_REDIS_URL": redis_url})
    assert problems(found) == [("queue", "id_collation")]
    assert found["queue", "id_collation"].found == "ai_op_ledger.sOpId loose"


def test_a_read_only_database_is_a_problem(postgres_database: str, redis_url: str) -> None:
    name = postgres_database.rpartition("/")[2]
    execute(postgres_database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    found = look({"OPSTAGE_DATABASE_URL": postgres_database, "OPSTAGE_REDIS_URL": redis_url})
    assert found["queue", "writable"].level is Level.PROBLEM


def test_postgresql_that_may_lose_commits_and_an_embedded_one_are_warned_about(redis_url: str) -> None:
    risky = {"fsync": "off", "synchronous_commit": "off", "max_connections": "15"}
    with (
        open_folder() as folder,
        EmbeddedPostgres(folder / "postgres", private_postgres_bin(), options=risky) as server,
    ):
        found = look(
            {
                "OPSTAGE_DATABASE_URL": server.url,
                "OPSTAGE_REDIS_URL": redis_url,
                "OPSTAGE_DATA_DIR": str(folder),
                "OPSTAGE_WORKER_CONCURRENCY": "6",
            }
        )
    warned = {
        check for (service, check), f in found.items() if service == "queue" and f.level is Level.WARNING
    }
    assert warned == {"fsync", "synchronous_commit", "max_connections", "production"}
    assert found["settings", "pool_size"].level is Level.WARNING


# --- rows ----------------------------------------------------------------------------------------------------------


def test_rows_nobody_moves_on_are_told_with_their_age(migrated: str, redis_url: str) -> None:
    with engine_of(migrated) as engine, engine.begin() as connection:
        foreign_insert(connection, iStatusCode=102)
        for code, column in ((100, op_queue.c.tCreateDate), (101, op_queue.c.tLeaseUntil)):
            op_id = foreign_insert(connection, iStatusCode=code)
            connection.execute(
                update(op_queue).where(op_queue.c.sId == op_id).values({column: db_now_plus(-3600)})
            )
    found = look({"OPSTAGE_DATABASE_URL": migrated, "OPSTAGE_REDIS_URL": redis_url})
    assert found["operations", "counts"].found == "100: 1, 101: 1, 102: 1"
    assert found["operations", "oldest_due"].level is Level.PROBLEM
    assert 3600 <= float(found["operations", "oldest_due"].found_text("en").split()[0]) < 3700
    assert found["operations", "unknown"].level is Level.WARNING
    assert found["operations", "lapsed"].level is Level.WARNING


def test_rows_without_a_code_and_what_the_sweeper_left_are_told(migrated: str, redis_url: str) -> None:
    env = {"OPSTAGE_DATABASE_URL": migrated, "OPSTAGE_REDIS_URL": redis_url}
    clean = look(env)
    assert [clean["operations", check].level for check in ("uncoded", "sweeper")] == [Level.OK] * 2
    with engine_of(migrated) as engine, engine.begin() as connection:
        for _ in range(2):
            foreign_insert(connection, iStatusCode=None)
        # Each is the sweeper's alone: workers would not find them due.
        for code, column in (
            (101, op_queue.c.tLeaseUntil),
            (103, op_queue.c.tExpireAt),
            (105, op_queue.c.tNotBefore),
        ):
            op_id = foreign_insert(connection, iStatusCode=code)
            ago = {101: 40, 103: 3600, 105: 50}[code]
            row = update(op_queue).where(op_queue.c.sId == op_id)
            connection.execute(row.values({column: db_now_plus(-ago)}))
    found = look(env)
    assert (found["operations", "uncoded"].found, found["operations", "uncoded"].level) == (
        "2",
        Level.WARNING,
    )
    sweeper = found["operations", "sweeper"]
    assert sweeper.level is Level.PROBLEM
    assert 3600 <= float(sweeper.found_text("en").split()[0]) < 3700


@pytest.mark.parametrize(("code", "column"), [(101, "tLeaseUntil"), (103, "tExpireAt"), (105, "tNotBefore")])
def test_each_kind_of_row_that_waits_for_the_sweeper_tells_of_it(
    sqlite_database: str, code: int, column: str
) -> None:
    upgrade(sqlite_database, Tree.QUEUE)
    with engine_of(sqlite_database) as engine:
        with engine.begin() as connection:
            op_id = foreign_insert(connection, iStatusCode=code)
            row = update(op_queue).where(op_queue.c.sId == op_id)
            connection.execute(row.values({column: db_now_plus(-60)}))
        with engine.connect() as connection:
            age = unswept_s(connection)
            assert age is not None
            assert 60 <= age < 120


# --- Redis, broker, workers ----------------------------------------------------------------------------------------


def test_a_redis_that_drops_queues_or_lets_anyone_in_is_told(
    private_redis: EmbeddedRedis, migrated_sqlite: str
) -> None:
    client = private_redis.client()
    client.config_set("maxmemory-policy", "volatile-lru")
    client.set("ballast", "x" * 20_000_000)
    client.config_set("appendonly", "no")
    client.config_set("requirepass", "")
    client.close()
    client = private_redis.client()  # a fresh one, so that the buffer of the large SET does not count
    client.config_set("maxmemory", str(int(client.info("memory")["used_memory"] * 1.1)))
    client.close()
    url = f"redis://127.0.0.1:{private_redis.port}/0"
    found = look({"OPSTAGE_DATABASE_URL": migrated_sqlite, "OPSTAGE_REDIS_URL": url})
    assert problems(found) == [("redis", "maxmemory_policy")]
    warned = {
        check for (service, check), f in found.items() if service == "redis" and f.level is Level.WARNING
    }
    assert warned == {"maxmemory", "persistence", "password"}


def test_an_embedded_redis_is_not_for_production(migrated_sqlite: str, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis") as server:
        found = look(
            {
                "OPSTAGE_DATABASE_URL": migrated_sqlite,
                "OPSTAGE_REDIS_URL": server.url,
                "OPSTAGE_DATA_DIR": str(tmp_path),
            }
        )
    assert found["redis", "production"].level is Level.WARNING


def test_a_redis_user_that_may_not_ask_gets_warnings_not_errors(
    private_redis: EmbeddedRedis, migrated_sqlite: str
) -> None:
    client = private_redis.client()
    client.acl_setuser(
        "shy",
        enabled=True,
        passwords=["+pw"],
        keys=["*"],
        channels=["*"],
        commands=["+@all", "-info", "-config", "-time"],
    )
    client.close()
    url = f"redis://shy:pw@127.0.0.1:{private_redis.port}/0"
    found = look({"OPSTAGE_DATABASE_URL": migrated_sqlite, "OPSTAGE_REDIS_URL": url})
    assert found["redis", "info"].level is Level.WARNING
    assert ("redis", "clock_offset") not in found
    assert [key for key in problems(found) if key[0] == "redis"] == []


def test_queue_depths_and_workers_with_another_visibility_timeout_are_told(
    private_redis: EmbeddedRedis, migrated_sqlite: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": migrated_sqlite,
        "OPSTAGE_REDIS_URL": private_redis.url,
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_ERP_ADAPTER": "tests.support.effects_adapter:build_adapter",
    }
    settings = settings_from(env)
    dispatcher = open_dispatcher(settings)
    assert all(dispatcher.announce([f"op{n}"]) for n in range(3))
    found = look(env)
    assert found["broker", "queue_depth"].found == "0"  # the second queue; the first is below
    depths = [f.found for f in diagnose(settings) if f.check == "queue_depth"]
    assert depths == ["1", "0"]  # one message wakes for all
    assert found["workers", "answering"].level is Level.INFO

    start_worker({**env, "OPSTAGE_VISIBILITY_TIMEOUT_S": "7200"}, name="other")
    answered: list[Found] = []
    wait_until(lambda: _answering(env, answered), 20, "the worker answers")
    assert answered[0]["workers", "answering"].found_text("en").startswith("other@")
    assert answered[0]["workers", "visibility_timeout"].found == "7200 != 3600"


def _answering(env: dict[str, str], answered: list[Found]) -> bool:
    found = look(env)
    if found["workers", "answering"].level is Level.OK:
        answered.append(found)
    return bool(answered)


def test_flower_without_a_login_is_a_problem(
    private_redis: EmbeddedRedis, migrated_sqlite: str, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        "OPSTAGE_DATABASE_URL": migrated_sqlite,
        "OPSTAGE_REDIS_URL": private_redis.url,
        "OPSTAGE_FLOWER_PORT": str(port),
    }
    assert look(env)["flower", "login"].level is Level.INFO
    command = [
        sys.executable,
        "-m",
        "celery",
        "-b",
        private_redis.url,
        "flower",
        f"--port={port}",
        "--address=127.0.0.1",
    ]
    with LoggedProcess(command, {}, tmp_path, "flower"):
        seen: list[Finding] = []
        wait_until(lambda: _flower(env, seen), 30, "Flower answers")
    assert seen[0].level is Level.PROBLEM
    assert "/metrics" in seen[0].found_text("en")


def _flower(env: dict[str, str], seen: list[Finding]) -> bool:
    finding = look(env)["flower", "login"]
    if finding.level is not Level.INFO:
        seen.append(finding)
    return bool(seen)


# --- servers that do not answer ------------------------------------------------------------------------------------


@contextmanager
def black_hole() -> Iterator[int]:
    """A port whose connection requests are dropped, as a firewall does: a listener whose queue is full."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port: int = listener.getsockname()[1]
    waiting = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        waiting.append(client)
    try:
        yield port
    finally:
        for one in (*waiting, listener):
            one.close()


@contextmanager
def deaf() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize("hole", [black_hole, deaf])
@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_servers_that_swallow_everything_are_told_in_bounded_time(
    scheme: str, hole: Callable[[], Iterator[int]], tmp_path: Path
) -> None:
    with hole() as port:  # type: ignore[attr-defined]
        env = {
            "OPSTAGE_DATABASE_URL": f"{scheme}://op:hushhush@127.0.0.1:{port}/x",
            "OPSTAGE_ERP_DATABASE_URL": f"{scheme}://op:hushhush@127.0.0.1:{port}/y",
            "OPSTAGE_REDIS_URL": f"redis://:hushhush@127.0.0.1:{port}/0",
            "OPSTAGE_BROKER_URL": f"amqp://op:hushhush@127.0.0.1:{port}//",
        }
        started = time.monotonic()
        found = look(env)
        took_s = time.monotonic() - started
    assert took_s < LIMIT_S + 1
    unreachable = {service for (service, _), f in found.items() if f.unreachable}
    assert unreachable == {"queue", "erp", "redis", "broker"}
    assert ("settings", "mode") in found
    assert "hushhush" not in repr(found)


def test_a_paused_redis_is_told_in_bounded_time_and_the_rest_all_the_same(
    private_redis: EmbeddedRedis, migrated_sqlite: str, tmp_path: Path
) -> None:
    env = {"OPSTAGE_DATABASE_URL": migrated_sqlite, "OPSTAGE_REDIS_URL": private_redis.url}
    private_redis.pause()
    try:
        started = time.monotonic()
        ran = opstage(tmp_path, env, "doctor", "--json")
        took_s = time.monotonic() - started
    finally:
        private_redis.resume()
    assert ran.code == 3, ran.err
    assert took_s < LIMIT_S + 15  # the interpreter and its imports, on a busy machine
    rows = ran.json()
    assert [row["service"] for row in rows if row["unreachable"]] == ["redis"]
    assert any(row["check"] == "counts" for row in rows)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_refused_login_is_a_problem_but_not_an_unreachable_server(
    kind: str, redis_url: str, tmp_path: Path
) -> None:
    with fresh_database(kind, tmp_path) as url:
        scheme, _, rest = url.partition("://")
        wrong = f"{scheme}://nobody_here:hushhush@{rest.partition('@')[2]}"
        found = look({"OPSTAGE_DATABASE_URL": wrong, "OPSTAGE_REDIS_URL": redis_url})
    assert problems(found) == [("queue", "login")]
    assert not found["queue", "login"].unreachable
    assert "hushhush" not in repr(found)


def test_a_refused_redis_password_is_a_problem_and_not_shown(
    private_redis: EmbeddedRedis, migrated_sqlite: str
) -> None:
    url = f"redis://:hushhush@127.0.0.1:{private_redis.port}/0"
    found = look({"OPSTAGE_DATABASE_URL": migrated_sqlite, "OPSTAGE_REDIS_URL": url})
    assert problems(found) == [("redis", "login")]
    assert "hushhush" not in repr(found)


def test_a_password_that_breaks_the_url_is_told_without_showing_it(tmp_path: Path) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": "postgresql://op:hush/hush#1@127.0.0.1/x",
        "OPSTAGE_REDIS_URL": "redis://:hush/hush@127.0.0.1:6379/0",
    }
    ran = opstage_here(tmp_path, env, "doctor", "--json")
    assert "hush" not in ran.out + ran.err
    assert ran.code in (1, 3)


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_ends_with_0_where_all_is_well_with_the_demo_erp(
    migrated_sqlite: str, redis_url: str, tmp_path: Path
) -> None:
    with engine_of(migrated_sqlite) as engine:
        create_demo(engine)
    env = {
        "OPSTAGE_DATABASE_URL": migrated_sqlite,
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_SEAL_KEY": "k" * 32,
    }
    well = opstage_here(tmp_path, env, "doctor", "--json")
    assert well.code == 0, well.out
    assert [row["found"] for row in well.json() if row["check"] == "catalogue"] == ["fits"]

    execute(migrated_sqlite, 'ALTER TABLE elecustomer DROP COLUMN "sCity"')
    ill = opstage_here(tmp_path, env, "doctor", "--json")
    assert ill.code == 1
    assert [row["check"] for row in ill.json() if row["level"] == "problem"] == ["catalogue"]


def test_an_adapter_that_cannot_be_loaded_is_a_problem(
    migrated_sqlite: str, redis_url: str, tmp_path: Path
) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": migrated_sqlite,
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_ERP_ADAPTER": "no.such.module:build",
    }
    ran = opstage_here(tmp_path, env, "doctor", "--json")
    assert ran.code == 1
    told = [row for row in ran.json() if row["check"] == "adapter"]
    assert [row["level"] for row in told] == ["problem"]
    assert "no.such.module" in told[0]["found"]


def test_the_command_looks_at_the_servers_of_a_running_up(
    migrated_sqlite: str, redis_url: str, tmp_path: Path
) -> None:
    servers = {
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_DATABASE_URL": migrated_sqlite,
        "OPSTAGE_REDIS_URL": redis_url,
    }
    asked = {"OPSTAGE_DATA_DIR": str(tmp_path), "OPSTAGE_DATABASE_URL": "embedded-postgres"}
    with announced(servers):
        rows = opstage_here(tmp_path, asked, "doctor", "--json").json()
    found = {(row["service"], row["check"]): row["level"] for row in rows}
    assert found["queue", "reachable"] == found["redis", "reachable"] == "ok"

    after = opstage_here(tmp_path, asked, "doctor", "--json")
    assert after.code == 3
    assert next(row["service"] for row in after.json() if row["unreachable"]) == "queue"


def test_the_command_reads_well_without_colour_in_both_languages(redis_url: str, tmp_path: Path) -> None:
    env = {"OPSTAGE_DATABASE_URL": f"sqlite:///{tmp_path}/none.db", "OPSTAGE_REDIS_URL": redis_url}
    english = opstage_here(tmp_path, env, "doctor")
    chinese = opstage_here(tmp_path, {**env, "OPSTAGE_LOCALE": "zh"}, "doctor")
    assert (english.code, chinese.code) == (1, 1)
    assert "PROBLEM  reachable" in english.out
    assert "→ Create it: opstage db upgrade" in english.out
    assert "1 problem(s)" in english.out
    assert "问题" in chinese.out
    assert "1 个问题" in chinese.out
    assert "\x1b" not in english.out
    password = redis_url.partition(":")[2].partition("@")[0].lstrip("/:")
    assert password
    assert password not in english.out + chinese.out


def test_settings_are_not_asked_for_a_server_that_only_up_would_start(redis_url: str) -> None:
    settings = Settings(_env_file=None, database_url="embedded-postgres", redis_url=redis_url)  # type: ignore[arg-type]
    found = {(f.service, f.check): f for f in diagnose(settings, environment={})}
    assert found["queue", "reachable"].unreachable
    todo = found["queue", "reachable"].todo
    assert todo is not None
    assert "opstage up" in todo.en
