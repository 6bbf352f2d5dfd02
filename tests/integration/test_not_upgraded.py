"""A queue database that was not brought up to this release is said to be so, by every door; nobody sees raw SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from migrations.run import Tree, upgrade
from staging.api.app import create_app
from staging.api.auth.static import issue_token
from staging.contracts.error import ErrorCode
from staging.domain.errors import Transient
from staging.domain.identity import ActorKind
from staging.storage import archive, audit, claims, operations
from staging.storage.unit_of_work import QueueStore
from tests.support.processes import settings_from
from tests.support.queue_rows import TENANT
from tests.support.world import PERSON, SEAL_KEY


def test_reading_and_writing_say_what_to_do(engine: Engine) -> None:
    store = QueueStore(engine)
    entry = audit.AuditEntry(PERSON, "cancel")

    def read() -> None:
        with store.read() as connection:
            operations.get(connection, TENANT, "x")

    def begin() -> None:
        with store.begin() as unit:
            claims.claim(unit.connection, ["x"], "token", 5.0)

    def transact() -> None:
        store.transact(lambda unit: audit.append(unit.connection, [entry]))

    for call in (read, begin, transact):
        with pytest.raises(Transient) as refusal:
            call()
        assert refusal.value.code is ErrorCode.UNAVAILABLE
        assert refusal.value.http_status == 503
        for locale in ("zh", "en"):
            assert "opstage db upgrade" in refusal.value.message(locale)


def test_so_does_one_that_is_a_release_behind(database_url: str, engine: Engine) -> None:
    upgrade(database_url, Tree.QUEUE, "0004")
    store = QueueStore(engine)
    with pytest.raises(Transient, match="opstage db upgrade"), store.read() as connection:
        archive.get(connection, TENANT, "x")
    upgrade(database_url, Tree.QUEUE)
    with store.read() as connection:
        assert archive.get(connection, TENANT, "x") is None


def test_the_api_answers_503_with_what_to_do(sqlite_database: str, redis_url: str, tmp_path: Path) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": sqlite_database,
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_SEAL_KEY": SEAL_KEY,
    }
    token = issue_token(
        tmp_path / "tokens.json",
        user="u-lin",
        brands="B001",
        subsidiary="S01",
        kind=ActorKind.PERSON,
        ttl_s=60,
    )
    headers = {"Authorization": f"Bearer {token}", "Accept-Language": "en"}
    with TestClient(create_app(settings_from(env)), raise_server_exceptions=False) as client:
        for method, path in (
            ("GET", "/v1/operations/x"),
            ("POST", "/v1/operations/query"),
            ("POST", "/v1/operations/x/cancel"),
            ("GET", "/v1/todos"),
        ):
            answer = client.request(method, path, headers=headers, json={} if method == "POST" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable"), answer.text
            assert "opstage db upgrade" in answer.json()["error"]["message"]
            assert "SELECT" not in answer.text
