"""What doctor makes of facts that no server of ours can be brought to show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from staging.messaging.probe import RedisFacts
from staging.services.doctor.database import judge_database
from staging.services.doctor.finding import Finding, Level, Section
from staging.services.doctor.messaging import judge_redis
from staging.settings import Settings
from staging.storage.probe import DatabaseFacts, Product

SETTINGS = Settings(_env_file=None)
MARIADB = DatabaseFacts(
    product=Product.MARIADB,
    version=(10, 11, 6),
    identity="x",
    isolation="READ COMMITTED",
    clock_offset_s=0.01,
    variables={
        **{f"character_set_{name}": "utf8mb4" for name in ("server", "database", "connection")},
        "time_zone": "+00:00",
        "innodb_flush_log_at_trx_commit": "1",
        "max_connections": "151",
        "connections_in_use": "3",
    },
)
REDIS = RedisFacts(
    product="Redis",
    version=(7, 2, 4),
    info={"maxmemory_policy": "noeviction", "role": "master", "redis_mode": "standalone", "aof_enabled": 1},
    config={"bind": "127.0.0.1", "protected-mode": "yes", "save": "", "dir": "/var/lib/redis"},
    open_to_all=False,
    clock_offset_s=0.0,
)


def not_ok(findings: list[Finding]) -> dict[str, Level]:
    return {f.check: f.level for f in findings if f.level in (Level.WARNING, Level.PROBLEM)}


def of_database(**changes: Any) -> dict[str, Level]:
    section = Section("queue", [])
    judge_database(section, replace(MARIADB, **changes), SETTINGS)
    return not_ok(section.findings)


def of_redis(info: dict[str, Any] | None = None, **changes: Any) -> dict[str, Level]:
    section = Section("redis", [])
    facts = replace(REDIS, **{"info": {**REDIS.info, **(info or {})}, **changes})
    judge_redis(section, facts, "redis://10.0.0.5:6379/0", SETTINGS)
    return not_ok(section.findings)


def test_nothing_is_said_against_a_good_server() -> None:
    assert of_database() == {}
    assert of_redis() == {}


@pytest.mark.parametrize("offset_s", [1.5, -1.5])
def test_a_clock_more_than_a_second_off_is_a_warning(offset_s: float) -> None:
    assert of_database(clock_offset_s=offset_s) == {"clock_offset": Level.WARNING}
    assert of_redis(clock_offset_s=offset_s) == {"clock_offset": Level.WARNING}
    assert of_database(clock_offset_s=offset_s / 2) == {}


def test_galera_is_not_supported() -> None:
    assert of_database(variables={**MARIADB.variables, "wsrep_on": "ON"}) == {"galera": Level.PROBLEM}


def test_servers_too_old_are_a_problem() -> None:
    assert of_database(version=(10, 5, 23)) == {"version": Level.PROBLEM}
    assert of_database(product=Product.MYSQL, version=(8, 0, 12)) == {"version": Level.PROBLEM}
    assert of_database(product=Product.MYSQL, version=(8, 0, 13)) == {}
    assert of_redis(version=(6, 0, 16)) == {"version": Level.PROBLEM}


def test_a_session_that_is_not_read_committed_or_not_utc_is_a_problem() -> None:
    assert of_database(isolation="REPEATABLE READ") == {"isolation_level": Level.PROBLEM}
    assert of_database(variables={**MARIADB.variables, "time_zone": "SYSTEM"}) == {"timezone": Level.PROBLEM}


def test_a_server_that_may_lose_commits_is_a_warning() -> None:
    lazy = {**MARIADB.variables, "innodb_flush_log_at_trx_commit": "2"}
    assert of_database(variables=lazy) == {"innodb_flush_log_at_trx_commit": Level.WARNING}


@pytest.mark.parametrize("info", [{"role": "slave"}, {"redis_mode": "cluster"}])
def test_a_replica_or_a_cluster_is_no_broker(info: dict[str, Any]) -> None:
    assert of_redis(info) == {"role": Level.PROBLEM}


def test_a_redis_that_cannot_save_is_a_problem() -> None:
    assert of_redis({"aof_last_write_status": "err"}) == {"last_save": Level.PROBLEM}


def test_a_redis_open_to_the_network_is_a_problem() -> None:
    found = of_redis(open_to_all=True, config={**REDIS.config, "bind": "10.0.0.5", "protected-mode": "no"})
    assert found == {"password": Level.PROBLEM, "bind": Level.WARNING}
