"""An archived operation is still its owner's to look at; nothing moves it, and its preparation is not run again."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from staging.services.archive import ArchiveService
from staging.storage.dialect import db_now_plus
from staging.storage.tables import op_queue
from tests.integration.api.test_cli_ops import run
from tests.integration.api.test_confirm import confirm_path, customers, rows_of
from tests.support.api import AGENT, B002, OPERATOR, SERVICE, Door, listening
from tests.support.demo_requests import new_customer, new_supplier, word
from tests.support.waiting import wait_until


def put_away(door: Door, *op_ids: str, **columns: Any) -> None:
    """Let them have ended 40 days ago, and archive what is older than 30."""
    store = door.services.databases.store
    with store.engine.begin() as connection:
        values = {"tExecutedDate": db_now_plus(-40 * 86_400), **columns}
        connection.execute(update(op_queue).where(op_queue.c.sId.in_(op_ids)).values(values))
    assert ArchiveService(store).run(30, 500).rows == len(op_ids)


@pytest.fixture
def done(door: Door) -> dict[str, Any]:
    """u-lin's, executed and archived; as it was answered before."""
    operation = door.run("u-lin", **new_customer())
    assert (operation["code"], operation["archivedAt"]) == (200, None)
    put_away(door, operation["id"])
    return operation


def test_its_owner_sees_all_of_it_as_before(door: Door, done: dict[str, Any]) -> None:
    path, same = f"/v1/operations/{done['id']}", done.keys() - {"archivedAt", "executedAt"}
    for who in (
        door.as_("u-lin"),
        door.as_("u-lin", AGENT),
        door.as_("ops", OPERATOR),
        door.as_("erp", SERVICE),
    ):
        found = who.get(path)
        assert {name: found[name] for name in same} == {name: done[name] for name in same}
        assert found["archivedAt"] > done["executedAt"]
    assert door.as_("u-lin").get(f"{path}/status")["resultBillId"] == done["resultBillId"]
    assert [e["verb"] for e in door.as_("u-lin").get(f"{path}/journal")] == ["submit", "claim", "finish"]
    shown = run(door, door.token("u-lin"), "ops", "show", done["id"], "--json").json()
    assert (shown["code"], [e["seq"] for e in shown["events"]]) == (200, [1, 2, 3])


def test_its_stream_tells_what_happened(door: Door, done: dict[str, Any]) -> None:
    path = f"/v1/operations/{done['id']}/events"
    with listening(door, path) as all_of_it, listening(door, path, last=f"{done['id']}:2") as the_rest:
        wait_until(lambda: len(all_of_it.events) == 3 and the_rest.events, 10, "the events come")
        assert [e.data["code"] for e in all_of_it.events] == [100, 101, 200]
        assert [e.data["seq"] for e in the_rest.events] == [3]


def test_nobody_else_learns_of_it(door: Door, done: dict[str, Any]) -> None:
    missing = door.as_("u-chen").get("/v1/operations/missing", expect=404)
    for other in (door.as_("u-chen"), door.as_("u-gao", tenant=B002), door.as_("ops2", OPERATOR, B002)):
        assert other.get(f"/v1/operations/{done['id']}", expect=404) == missing
        assert other.get(f"/v1/operations/{done['id']}/journal", expect=404) == missing


def test_nothing_moves_it(door: Door) -> None:
    failed = door.stage("u-lin", **new_customer())["id"]
    put_away(door, failed, sStatus="fail", iStatusCode=500)
    found = door.as_("u-lin").get(f"/v1/operations/{failed}")
    assert (found["canCancel"], found["canRetry"]) == (False, False)
    for move in ("cancel", "retry"):
        refused = door.as_("u-lin").post(f"/v1/operations/{failed}/{move}", expect=409)["error"]
        assert refused["code"] == "state_conflict"
        assert "archived" in refused["message"]
    assert door.as_("u-lin").get(f"/v1/operations/{failed}") == found


def test_it_can_be_prepared_again_or_taken_back(door: Door, done: dict[str, Any]) -> None:
    rename = {"formId": "customer", "opType": "update", "record": done["resultBillId"]}
    renamed = door.run("u-lin", **rename, payload={"name": word()})
    assert renamed["code"] == 200
    put_away(door, renamed["id"])
    inverse = door.as_("u-lin").post(f"/v1/operations/{renamed['id']}/revert")
    assert inverse["state"] == "PREPARED"
    failed = door.stage("u-lin", **new_customer())["id"]
    put_away(door, failed, sStatus="fail", iStatusCode=500)
    assert door.as_("u-lin").post(f"/v1/operations/{failed}/restage")["state"] == "PREPARED"


def test_confirming_its_preparation_again_says_the_same_and_runs_nothing(door: Door) -> None:
    names = [word(), word(), word()]
    prepared = door.prepare("u-lin", items=[new_customer(name=name) for name in names])
    person = door.as_("u-lin")
    ids = [o["id"] for o in person.post(confirm_path(prepared), expect=202)["operations"]]
    door.execute(*ids)
    put_away(door, ids[1])
    for _ in range(2):
        again = person.post(confirm_path(prepared), expect=202)["operations"]
        assert [(o["id"], o["code"]) for o in again] == [(i, 200) for i in ids]
    put_away(door, ids[0], ids[2])
    again = person.post(confirm_path(prepared), expect=202)["operations"]
    assert [o["id"] for o in again] == ids
    edits = {"edits": {"name": word()}}
    assert person.post(confirm_path(prepared), edits, expect=409)["error"]["code"] == "idempotency_conflict"
    assert rows_of(door, prepared) == 0
    assert [customers(door, name) for name in names] == [1, 1, 1]


def test_another_may_depend_on_it(door: Door, done: dict[str, Any]) -> None:
    after = door.stage("u-lin", **new_customer(), dependsOn=[done["id"]])
    assert after["code"] == 105
    prepared = door.prepare("u-chen", **new_supplier(), dependsOn=[done["id"]])
    refused = door.as_("u-chen").post(confirm_path(prepared), expect=404)
    assert refused["error"]["code"] == "operation_not_found"
