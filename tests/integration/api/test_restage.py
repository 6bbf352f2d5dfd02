"""Restage: in one step from what was refused, or has moved meanwhile, to a fresh preparation (I11)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.identity import ActorKind
from tests.support.api import AGENT, PERSON, Door
from tests.support.demo_requests import new_customer, word
from tests.support.queue_rows import foreign_insert


def restage(door: Door, path: str, body: Any = None, *, kind: ActorKind = PERSON, expect: int = 200) -> Any:
    return door.as_("u-lin", kind).post(f"/v1/{path}/restage", body, expect=expect)


def changed(record: str, **payload: Any) -> dict[str, Any]:
    return {"formId": "customer", "opType": "update", "record": record, "payload": payload}


@pytest.mark.parametrize("kind", [AGENT, PERSON])
def test_a_preparation_is_worked_out_again_with_edits_and_the_old_one_is_superseded(
    kind: ActorKind, door: Door
) -> None:
    first = door.prepare("u-lin", **new_customer(city="上海"), conversationId="c-1")
    path = f"preparations/{first['preparationId']}"
    second = restage(door, path, {"edits": {"city": "苏州"}}, kind=kind)
    shown = {change["field"]: change["new"] for change in second["preview"]["fields"]}
    assert shown["city"] == "苏州"
    assert second["snapshotHash"] != first["snapshotHash"]
    refused = door.as_("u-lin").post(f"/v1/{path}/confirm", {}, expect=409)
    assert refused["error"]["code"] == ErrorCode.PREPARATION_SUPERSEDED
    assert restage(door, path, expect=409)["error"]["code"] == ErrorCode.PREPARATION_SUPERSEDED
    (operation,) = door.as_("u-lin").post(
        f"/v1/preparations/{second['preparationId']}/confirm", {}, expect=202
    )["operations"]
    assert (operation["payload"]["city"], operation["conversationId"]) == ("苏州", "c-1")


def test_an_edit_of_an_item_there_is_not_is_refused_and_supersedes_nothing(door: Door) -> None:
    first = door.prepare("u-lin", **new_customer())["preparationId"]
    body = {"itemEdits": {"1": {"city": "x"}}}
    assert (
        restage(door, f"preparations/{first}", body, expect=422)["error"]["code"] == ErrorCode.FIELD_INVALID
    )
    door.as_("u-lin").post(f"/v1/preparations/{first}/confirm", {}, expect=202)


def test_an_operation_refused_for_drift_is_prepared_on_the_record_as_it_is_now(door: Door) -> None:
    record = door.run("u-lin", **new_customer(phone="1"))["resultBillId"]
    late = door.stage("u-lin", **changed(record, phone="3"), conversationId="c-2")["id"]
    door.run("u-lin", **changed(record, phone="2"))
    assert restage(door, f"operations/{late}", expect=409)["error"]["code"] == ErrorCode.STATE_CONFLICT
    door.execute(late)
    again = restage(door, f"operations/{late}")
    (change,) = again["preview"]["fields"]
    assert (change["old"], change["new"]) == ("2", "3")
    path = f"/v1/preparations/{again['preparationId']}/confirm"
    (operation,) = door.as_("u-lin").post(path, {}, expect=202)["operations"]
    assert operation["conversationId"] == "c-2"
    door.execute(operation["id"])
    assert door.as_("u-lin").get(f"/v1/forms/customer/records/{record}")["values"]["phone"] == "3"


def test_totals_are_left_out_and_worked_out_anew(door: Door) -> None:
    customer = door.run("u-lin", **new_customer())["resultBillId"]
    parts = [{"name": "封面", "quantity": "10", "price": "1.5", "tiers": [{"quantity": "20", "price": "1"}]}]
    payload = {"customer": customer, "title": word(), "parts": parts}
    op_id = door.stage("u-lin", formId="quotation", opType="create", payload=payload)["id"]
    door.as_("u-lin").post(f"/v1/operations/{op_id}/cancel")
    again = restage(door, f"operations/{op_id}", {"edits": {"parts": [{**parts[0], "quantity": "30"}]}})
    assert [t["new"] for t in again["preview"]["totals"]] == ["45.00"]


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        ("{broken", 400, ErrorCode.PAYLOAD_INVALID),
        ("[1]", 400, ErrorCode.PAYLOAD_INVALID),
        (json.dumps({"parts": 5, "nonsense": [1, {"a": None}]}), 422, ErrorCode.FIELD_INVALID),
    ],
)
def test_a_foreign_row_that_makes_no_sense_is_refused_by_rule_and_not_by_accident(
    payload: str, status: int, code: ErrorCode, door: Door
) -> None:
    with door.services.databases.store.engine.begin() as connection:
        op_id = foreign_insert(connection, sPayload=payload)
    door.execute(op_id)
    refused = restage(door, f"operations/{op_id}", expect=status)
    assert refused["error"]["code"] == code
