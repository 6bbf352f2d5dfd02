"""A person's yes over HTTP: once is enough, and often is not more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from staging.storage.tables import op_event, op_queue
from tests.support.api import AGENT, Door
from tests.support.demo_requests import new_customer, word
from workers.erp.demo.schema import masters


def confirm_path(prepared: dict[str, Any]) -> str:
    return f"/v1/preparations/{prepared['preparationId']}/confirm"


def rows_of(door: Door, prepared: dict[str, Any]) -> int:
    with door.services.databases.store.read() as connection:
        mine = op_queue.c.sPreparationId == prepared["preparationId"]
        return int(connection.execute(select(func.count()).select_from(op_queue).where(mine)).scalar_one())


def customers(door: Door, name: str) -> int:
    with door.services.databases.store.read() as connection:
        table = masters.customer
        named = table.c.sCustomerName == name
        return int(connection.execute(select(func.count()).select_from(table).where(named)).scalar_one())


def test_preparing_writes_nothing_and_confirming_one_row(door: Door) -> None:
    name = word()
    prepared = door.prepare("u-lin", **new_customer(name=name))
    assert prepared.keys() >= {
        *("state", "preparationId", "expiresAt", "snapshotHash", "commandType", "autoExecute"),
        *("requiresApproval", "preview"),
    }
    assert (rows_of(door, prepared), customers(door, name)) == (0, 0)
    (operation,) = door.as_("u-lin").post(confirm_path(prepared), expect=202)["operations"]
    assert (operation["code"], operation["status"], operation["seq"]) == (100, "pending", 1)
    assert (rows_of(door, prepared), customers(door, name)) == (1, 0)
    door.execute(operation["id"])
    assert customers(door, name) == 1


def test_a_repeat_returns_the_same_operations_whatever_became_of_them(door: Door) -> None:
    prepared = door.prepare("u-lin", items=[new_customer(), new_customer()])
    person = door.as_("u-lin")
    first = person.post(confirm_path(prepared), {}, expect=202)["operations"]
    door.execute(first[0]["id"])
    again = person.post(confirm_path(prepared), expect=202)["operations"]
    assert [o["id"] for o in again] == [o["id"] for o in first]
    assert [o["code"] for o in again] == [200, 100]
    assert rows_of(door, prepared) == 2


def test_fifty_at_once_are_one(door: Door) -> None:
    name = word()
    prepared = door.prepare("u-lin", **new_customer(name=name))
    headers = {"Authorization": f"Bearer {door.as_('u-lin').token}"}

    def confirm(_: int) -> httpx.Response:
        return httpx.post(door.url + confirm_path(prepared), headers=headers, timeout=60)

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(confirm, range(50)))
    assert {answer.status_code for answer in answers} == {202}
    ids = {tuple(o["id"] for o in answer.json()["operations"]) for answer in answers}
    assert len(ids) == 1
    ((op_id,),) = ids
    assert rows_of(door, prepared) == 1
    with door.services.databases.store.read() as connection:
        events = connection.execute(select(op_event.c.iSeq).where(op_event.c.sOpId == op_id)).all()
    assert [seq for (seq,) in events] == [1]
    door.execute(op_id, op_id)
    assert customers(door, name) == 1


def test_edits_on_the_card_are_what_is_executed(door: Door) -> None:
    prepared = door.prepare("u-lin", **new_customer(creditLimit="10"))
    name = word()
    edits = {"edits": {"name": name, "creditLimit": "99.50"}}
    person = door.as_("u-lin")
    (operation,) = person.post(confirm_path(prepared), edits, expect=202)["operations"]
    assert operation["payload"]["creditLimit"] == "99.50"
    shown = {f["field"]: f["new"] for f in operation["preview"]["fields"]}
    assert (shown["name"], shown["creditLimit"]) == (name, "99.50")
    door.execute(operation["id"])
    assert customers(door, name) == 1
    assert person.post(confirm_path(prepared), edits, expect=202)["operations"][0]["id"] == operation["id"]
    other = person.post(confirm_path(prepared), {"edits": {"name": word()}}, expect=409)
    assert other["error"]["code"] == "idempotency_conflict"


def test_edits_are_validated_like_anything_else(door: Door) -> None:
    prepared = door.prepare("u-lin", **new_customer())
    edits = {"edits": {"creditLimit": "1,000", "number": "KH9999", "nonsense": 1, "paymentDays": 999}}
    error = door.as_("u-lin").post(confirm_path(prepared), edits, expect=422)["error"]
    assert {d["field"] for d in error["details"]} == {"creditLimit", "number", "nonsense", "paymentDays"}
    assert rows_of(door, prepared) == 0
    assert door.as_("u-lin").post(confirm_path(prepared), {}, expect=202)


@pytest.mark.parametrize("item", ["1", "-1", "x", "²", "00"])
def test_edits_of_an_item_that_is_not_there_are_refused(item: str, door: Door) -> None:
    prepared = door.prepare("u-lin", **new_customer())
    body = {"itemEdits": {item: {"name": word()}}}
    if item == "00":
        body["itemEdits"]["0"] = {"name": word()}
    door.as_("u-lin").post(confirm_path(prepared), body, expect=422)
    assert rows_of(door, prepared) == 0


def test_what_was_dropped_or_replaced_cannot_be_confirmed(door: Door) -> None:
    agent, person = door.as_("u-lin", AGENT), door.as_("u-lin")
    dropped = door.prepare("u-lin", **new_customer())
    agent.delete(f"/v1/preparations/{dropped['preparationId']}")
    error = person.post(confirm_path(dropped), expect=404)["error"]
    assert error["code"] == "preparation_not_found_or_expired"
    old = door.prepare("u-lin", **new_customer())
    new = door.prepare("u-lin", **new_customer(), supersedes=old["preparationId"])
    assert person.post(confirm_path(old), expect=409)["error"]["code"] == "preparation_superseded"
    person.post(confirm_path(new), expect=202)


def test_a_dependency_must_be_ones_own(door: Door) -> None:
    theirs = door.stage("u-zhao", **new_customer())["id"]
    for other in (theirs, "none", "#2", "#0", "#x"):
        prepared = door.prepare("u-lin", **new_customer(), dependsOn=[other])
        error = door.as_("u-lin").post(confirm_path(prepared), expect=404)["error"]
        assert error["code"] == "operation_not_found"


def test_a_time_needs_its_zone(door: Door) -> None:
    for moment in ("2030-01-01T00:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00"):
        request = {**new_customer(), "notBefore": moment}
        error = door.as_("u-lin").post("/v1/preparations", request, expect=422)["error"]
        assert error["details"][0]["field"] == "notBefore"
    operation = door.stage("u-lin", **new_customer(), notBefore="2030-01-01T00:00:00+08:00")
    assert (operation["code"], operation["notBefore"]) == (105, "2029-12-31T16:00:00Z")
