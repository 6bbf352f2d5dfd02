"""``opstage audit``: a whole log passes, a touched one does not, a rewritten one is caught by heads kept elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, update

from staging.domain.identity import Actor, ActorKind, Tenant
from staging.storage import audit
from staging.storage.audit import AuditEntry
from staging.storage.engine import make_engine
from staging.storage.tables import audit_head, audit_log, metadata
from staging.storage.unit_of_work import QueueStore
from tests.support.cli import Ran, opstage_here

HERE, THERE = Tenant("B001", "S01"), Tenant("B002", "S01")


class Log:
    """A database with entries of two tenants, and the command line on it."""

    def __init__(self, engine: Engine, url: str, folder: Path) -> None:
        self.engine, self._url, self.folder = engine, url, folder
        metadata.create_all(engine)
        self.append(HERE, 3)
        self.append(THERE, 2)

    def append(self, tenant: Tenant, count: int, action: str = "confirm") -> None:
        entries = [
            AuditEntry(Actor(tenant, "u-林", ActorKind.PERSON), action, f"op{n}") for n in range(count)
        ]
        QueueStore(self.engine).transact(lambda unit: audit.append(unit.connection, entries))

    def run(self, *arguments: str, **env: str) -> Ran:
        return opstage_here(self.folder, {"OPSTAGE_DATABASE_URL": self._url, **env}, "audit", *arguments)

    def keep_heads(self) -> str:
        path = self.folder / "heads.json"
        ran = self.run("head", "--json")
        assert ran.code == 0, ran.err
        path.write_text(ran.out, encoding="utf-8")
        return str(path)

    def spoil(self) -> None:
        """Change one entry of ``HERE``."""
        with self.engine.begin() as connection:
            entry = (audit_log.c.sChain == "B001/S01") & (audit_log.c.iSeq == 2)
            connection.execute(update(audit_log).where(entry).values(sActor="u-nobody"))


@pytest.fixture
def log(engine: Engine, database_url: str, tmp_path: Path) -> Log:
    return Log(engine, database_url, tmp_path)


def test_a_whole_log_passes_and_a_changed_entry_is_named(log: Log) -> None:
    whole = log.run("verify", "--json")
    assert whole.code == 0, whole.err
    assert whole.json() == {"whole": True, "chains": 2, "entries": 5, "compared": 0, "breaks": []}

    log.spoil()
    broken = log.run("verify", "--json")
    assert broken.code == 1
    assert broken.json()["whole"] is False
    assert broken.json()["breaks"] == [{"chain": "B001/S01", "seq": 2, "reason": "changed"}]


@pytest.fixture
def sqlite_log(sqlite_database: str, tmp_path: Path) -> Iterator[Log]:
    """What does not depend on the engine is tried on one."""
    engine = make_engine(sqlite_database)
    yield Log(engine, sqlite_database, tmp_path)
    engine.dispose()


def test_a_break_is_told_in_words_of_both_languages(sqlite_log: Log) -> None:
    sqlite_log.spoil()
    english, chinese = sqlite_log.run("verify"), sqlite_log.run("verify", OPSTAGE_LOCALE="zh")
    assert (english.code, chinese.code) == (1, 1)
    assert "B001/S01 entry 2 was changed" in english.out
    assert "B001/S01 第 2 条：内容被改动" in chinese.out


def test_one_tenant_can_be_checked_alone(sqlite_log: Log) -> None:
    sqlite_log.spoil()
    assert sqlite_log.run("verify", "--tenant", "B002/S01").code == 0
    assert sqlite_log.run("verify", "--tenant", "B001/S01").code == 1
    assert sqlite_log.run("verify", "--tenant", "B001").code == 2


def test_a_log_that_only_grew_fits_the_kept_heads(sqlite_log: Log) -> None:
    kept = sqlite_log.keep_heads()
    sqlite_log.append(HERE, 4, "cancel")
    ran = sqlite_log.run("verify", "--json", "--against", kept)
    assert ran.code == 0
    assert (ran.json()["entries"], ran.json()["compared"]) == (9, 2)


def test_a_rewritten_tail_that_verifies_by_itself_is_caught_by_the_kept_heads(sqlite_log: Log) -> None:
    kept = sqlite_log.keep_heads()
    with sqlite_log.engine.begin() as connection:  # who may write log and head can forge both
        connection.execute(delete(audit_log).where(audit_log.c.sChain == "B001/S01"))
        connection.execute(delete(audit_head).where(audit_head.c.sChain == "B001/S01"))
    sqlite_log.append(HERE, 5, "something else")
    assert sqlite_log.run("verify").code == 0
    ran = sqlite_log.run("verify", "--json", "--against", kept)
    assert ran.code == 1
    assert ran.json()["breaks"] == [{"chain": "B001/S01", "seq": 3, "reason": "rewritten"}]


def test_a_log_deleted_with_its_head_is_caught_by_the_kept_heads(sqlite_log: Log) -> None:
    kept = sqlite_log.keep_heads()
    with sqlite_log.engine.begin() as connection:
        connection.execute(delete(audit_log))
        connection.execute(delete(audit_head))
    ran = sqlite_log.run("verify", "--json", "--against", kept)
    assert ran.code == 1
    assert {one["reason"] for one in ran.json()["breaks"]} == {"rewritten"}


@pytest.mark.parametrize("text", ["not json", "{}[", '[{"chain": "B001/S01"}]', '["x"]', "3"])
def test_a_file_that_holds_no_heads_is_wrong_usage(sqlite_log: Log, text: str) -> None:
    path = sqlite_log.folder / "kept"
    path.write_text(text, encoding="utf-8")
    ran = sqlite_log.run("verify", "--against", str(path))
    assert ran.code == 2, ran.out


def test_a_database_without_tables_or_without_a_server_is_unreachable(tmp_path: Path) -> None:
    empty = opstage_here(
        tmp_path, {"OPSTAGE_DATABASE_URL": f"sqlite:///{tmp_path}/x.db"}, "audit", "verify", "--json"
    )
    assert empty.code == 3
    assert "opstage db upgrade" in json.loads(empty.out)["error"]["message"]
    nobody = opstage_here(
        tmp_path, {"OPSTAGE_DATABASE_URL": "postgresql://op@127.0.0.1:1/x"}, "audit", "verify"
    )
    assert nobody.code == 3
