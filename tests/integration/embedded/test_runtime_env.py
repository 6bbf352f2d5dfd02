"""What child processes are told: servers as configured, embedded ones only where nothing is configured."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from staging.embedded.errors import EmbeddedServerError
from staging.embedded.runtime import announced, running_env, runtime_env
from staging.settings import Settings
from tests.support.private import open_folder
from tests.support.processes import settings_from
from tests.support.services import shared_redis


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


def settings(folder: Path, **more: str) -> Settings:
    return settings_from({"OPSTAGE_DATA_DIR": str(folder), **more})


def answers(url: str) -> bool:
    client = redis.Redis.from_url(url)
    try:
        return bool(client.ping())
    finally:
        client.close()


def test_with_nothing_configured_redis_is_embedded_and_the_database_is_a_file_in_the_data_directory(
    folder: Path,
) -> None:
    with runtime_env(settings(folder)) as env:
        assert answers(env["OPSTAGE_REDIS_URL"])
        assert env["OPSTAGE_BROKER_URL"] == env["OPSTAGE_REDIS_URL"]
        assert env["OPSTAGE_DATABASE_URL"] == f"sqlite:///{folder}/opstage.db"
        assert env["OPSTAGE_DATA_DIR"] == str(folder)
        assert "OPSTAGE_ERP_DATABASE_URL" not in env
    with pytest.raises(redis.exceptions.ConnectionError):
        answers(env["OPSTAGE_REDIS_URL"])


def test_a_configured_redis_is_used_and_no_other_is_started(folder: Path) -> None:
    url = shared_redis()
    with runtime_env(settings(folder, OPSTAGE_REDIS_URL=url)) as env:
        assert env["OPSTAGE_REDIS_URL"] == url
        assert answers(env["OPSTAGE_REDIS_URL"])
        assert not (folder / "redis").exists()


def test_configured_databases_and_broker_are_passed_on(folder: Path) -> None:
    configured = settings(
        folder,
        OPSTAGE_REDIS_URL="redis://r:1/0",
        OPSTAGE_BROKER_URL="amqp://b:2//",
        OPSTAGE_DATABASE_URL="postgresql://q:3/queue",
        OPSTAGE_ERP_DATABASE_URL="mariadb://e:4/erp",
    )
    with runtime_env(configured) as env, runtime_env(configured) as again:
        key = env.pop("OPSTAGE_SEAL_KEY")
        assert (len(key), again["OPSTAGE_SEAL_KEY"]) == (43, key)  # made once, kept with the data
        assert env == {
            "OPSTAGE_DATA_DIR": str(folder),
            "OPSTAGE_REDIS_URL": "redis://r:1/0",
            "OPSTAGE_BROKER_URL": "amqp://b:2//",
            "OPSTAGE_DATABASE_URL": "postgresql+psycopg://q:3/queue",
            "OPSTAGE_ERP_DATABASE_URL": "mariadb+pymysql://e:4/erp",
        }


def test_embedded_postgres_is_started_where_it_is_asked_for_and_keeps_its_data(folder: Path) -> None:
    asked = settings(folder, OPSTAGE_REDIS_URL="redis://r:1/0", OPSTAGE_DATABASE_URL="embedded-postgres")
    url = ""
    for expected in (1, 2):
        with runtime_env(asked) as env:
            url = env["OPSTAGE_DATABASE_URL"]
            assert url.startswith("postgresql+psycopg://opstage:")
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS starts (n INT)")
                connection.execute("INSERT INTO starts VALUES (1)")
                assert connection.execute("SELECT count(*) FROM starts").fetchone() == (expected,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url.replace("+psycopg", ""), connect_timeout=2)


def test_other_commands_find_a_running_set_and_nothing_else(folder: Path) -> None:
    env = {"OPSTAGE_DATA_DIR": str(folder), "OPSTAGE_REDIS_URL": "redis://:secret@127.0.0.1:1/0"}
    assert running_env(folder) == {}
    with announced(env):
        assert running_env(folder) == env
        (state,) = folder.iterdir()
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        with pytest.raises(EmbeddedServerError, match="already runs"), announced(env):
            pass
        assert running_env(folder) == env
    assert running_env(folder) == {}


def test_what_a_killed_set_left_behind_is_not_believed(folder: Path) -> None:
    (folder / "running.json").write_text('{"OPSTAGE_REDIS_URL": "redis://127.0.0.1:1/0"}')
    assert running_env(folder) == {}
    env = {"OPSTAGE_DATA_DIR": str(folder)}
    with announced(env):
        assert running_env(folder) == env
