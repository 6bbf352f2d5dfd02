"""What a confirm inserts, in however few statements: rows, first events and audit entries, on three engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from staging.contracts.status import StatusCode as C
from staging.domain.identity import Actor, ActorKind
from staging.domain.operation import NewOperation, Operation, Told
from staging.storage import audit, confirming, journal, operations
from staging.storage.tables import metadata
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from tests.support.queue_rows import TENANT, new_operation

PERSON = Actor(TENANT, "u-lin", ActorKind.PERSON)
_AT_ONCE = 20


@pytest.fixture
def store(engine: Engine) -> QueueStore:
    metadata.create_all(engine)
    return QueueStore(engine)


def confirm(store: QueueStore, *new: NewOperation) -> tuple[list[Operation], list[Told]]:
    said = [audit.AuditEntry(PERSON, "confirm", o.id, {"hash": o.payload_hash}) for o in new]

    def insert(unit: UnitOfWork) -> tuple[list[Operation], list[Told]]:
        return confirming.insert_confirmed(unit.connection, new, PERSON, said)

    return store.transact(insert)[0]


@pytest.mark.parametrize(
    "told",
    [
        [{}],
        [{"expires_in_s": 3600.0}],
        [{"code": C.WAITING_OTHER, "not_before": datetime(2030, 1, 1, 12, 30, 1, 5, UTC)}],
        [{"source_ref_json": '{"formId":"po"}', "auto_execute": False, "code": C.WAITING_USER}],
        [{}, {"expires_in_s": 0.5}],
    ],
    ids=["one", "expiring", "later", "for the user", "several"],
)
def test_what_is_returned_is_what_is_in_the_queue(store: QueueStore, told: list[dict[str, Any]]) -> None:
    for _ in range(2):  # the chain's first entry, and one after it
        new = [new_operation(**one) for one in told]
        inserted, news = confirm(store, *new)
        with store.read() as connection:
            assert inserted == operations.by_ids(connection, [o.id for o in new])
            assert news == journal.newest(connection, [o.id for o in new])
            for operation in inserted:
                (event,) = journal.events(connection, operation.id)
                assert (event.verb, event.code, event.actor) == ("submit", operation.code, "u-lin")
    with store.read() as connection:
        assert audit.verify(connection) == []
        assert audit.heads(connection)[audit.chain_of(TENANT)][0] == 2 * len(told)


def test_many_at_once_with_one_key_are_one_and_fork_nothing(store: QueueStore) -> None:
    def attempt(number: int) -> bool:
        try:
            confirm(store, new_operation(id=f"op-{number}", idempotency_key="the key"))
        except operations.KeyTaken:
            return False
        return True

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        assert sum(pool.map(attempt, range(_AT_ONCE))) == 1
    with store.read() as connection:
        assert audit.verify(connection) == []
        assert audit.heads(connection)[audit.chain_of(TENANT)][0] == 1


def test_many_at_once_in_one_tenant_stand_in_one_chain(store: QueueStore) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(lambda _: confirm(store, new_operation()), range(_AT_ONCE)))
    assert len({operation.id for (operation,), _ in done}) == _AT_ONCE
    with store.read() as connection:
        assert audit.verify(connection) == []
        assert audit.heads(connection)[audit.chain_of(TENANT)][0] == _AT_ONCE
