"""Approval, the manual path, revert: what people and the ERP do after confirm, over HTTP."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from sqlalchemy import update

from staging.storage.tables import op_queue
from tests.support.api import AGENT, OPERATOR, SERVICE, Door
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier, word


def record_of(door: Door, operation: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/forms/{operation['formId']}/records/{operation['resultBillId']}"
    found: dict[str, Any] = door.as_(operation["maker"]).get(path)
    return found


def confirmed(door: Door, user: str, preparation: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/preparations/{preparation['preparationId']}/confirm"
    (operation,) = door.as_(user).post(path, {}, expect=202)["operations"]
    door.execute(operation["id"])
    done: dict[str, Any] = door.as_(user).get(f"/v1/operations/{operation['id']}")
    return done


def reverted(door: Door, operation: dict[str, Any]) -> dict[str, Any]:
    """Prepare the inverse as an agent, confirm as the person, execute."""
    preparation = door.as_(operation["maker"], AGENT).post(f"/v1/operations/{operation['id']}/revert")
    return confirmed(door, operation["maker"], preparation)


# --- approval --------------------------------------------------------------------------------------------------------


def test_a_second_person_approves_and_it_runs(door: Door) -> None:
    op = door.stage("u-chen", **new_supplier())
    assert (op["code"], op["requiresApproval"]) == (104, True)
    assert op["id"] in [o["id"] for o in door.as_("u-qian").get("/v1/todos")["waiting"]]
    assert op["id"] not in [o["id"] for o in door.as_("u-chen").get("/v1/todos")["waiting"]]
    assert op["id"] not in [o["id"] for o in door.as_("u-wang").get("/v1/todos")["waiting"]]
    path = f"/v1/operations/{op['id']}/approve"
    assert door.as_("u-wang").post(path, expect=404)
    assert door.as_("u-chen").post(path, expect=403)
    assert door.as_("u-qian", AGENT).post(path, expect=403)
    approved = door.as_("u-qian").post(path)
    assert (approved["code"], approved["approvedBy"]) == (100, "u-qian")
    assert door.as_("u-qian").post(path, expect=409)["error"]["code"] == "state_conflict"
    door.execute(op["id"])
    assert door.as_("u-chen").get(f"/v1/operations/{op['id']}")["code"] == 200


def test_a_rejection_says_why_and_ends_it(door: Door) -> None:
    op = door.stage("u-chen", **new_supplier())
    rejected = door.as_("u-qian").post(f"/v1/operations/{op['id']}/reject", {"reason": "资质不全"})
    assert (rejected["code"], rejected["message"]) == (450, "资质不全")
    door.execute(op["id"])
    assert door.as_("u-chen").get(f"/v1/operations/{op['id']}")["code"] == 450


# --- the manual path -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outsource(door: Door) -> dict[str, Any]:
    """A request that leads to a 103."""

    def first(form: str) -> str:
        query = {"filter": {"invalid": False}}
        return str(door.as_("u-chen").post(f"/v1/forms/{form}/query", query)["items"][0]["id"])

    return new_outsource_order(first("supplier"), first("product"))


def test_the_erps_form_opens_with_what_was_confirmed_and_completes_it(
    door: Door, outsource: dict[str, Any]
) -> None:
    op = door.stage("u-chen", **outsource, conversationId="c-7")
    assert (op["code"], op["link"]) == (103, f"/form/outsource_order?staging={op['id']}")
    door.execute(op["id"])
    erp = door.as_("erp", SERVICE)
    filled = erp.get(f"/v1/operations/{op['id']}/prefill")
    assert filled == door.as_("u-chen").get(f"/v1/operations/{op['id']}/prefill")
    assert filled["values"]["lines"][0]["price"] == "1.2500"
    assert (filled["formId"], filled["record"], filled["maker"]) == ("outsource_order", "", "u-chen")
    assert filled["conversationId"] == "c-7"
    done = erp.post(f"/v1/operations/{op['id']}/complete", {"resultBillId": "W/1&x"})
    assert (done["code"], done["resultBillId"]) == (200, "W/1&x")
    assert done["link"] == "/form/outsource_order?bill=W%2F1%26x"
    conflict = erp.post(f"/v1/operations/{op['id']}/complete", {"resultBillId": "W-2"}, expect=409)
    assert conflict["error"]["code"] == "state_conflict"
    assert erp.get(f"/v1/operations/{op['id']}/prefill", expect=409)["error"]["code"] == "state_conflict"


def test_the_erp_may_say_that_it_did_not_work_out(door: Door, outsource: dict[str, Any]) -> None:
    op = door.stage("u-chen", **outsource)
    for body in ({}, {"resultBillId": "W-1", "error": "no"}):
        assert door.as_("erp", SERVICE).post(f"/v1/operations/{op['id']}/complete", body, expect=422)
    done = door.as_("erp", SERVICE).post(f"/v1/operations/{op['id']}/complete", {"error": "图纸缺失"})
    assert (done["code"], done["message"]) == (422, "图纸缺失")


def test_todos_are_what_waits_what_runs_and_what_ended(door: Door, outsource: dict[str, Any]) -> None:
    waiting, running = door.stage("u-chen", **outsource), door.stage("u-chen", **new_supplier())
    ended = door.stage("u-chen", **new_supplier())
    door.as_("u-chen").post(f"/v1/operations/{ended['id']}/cancel")
    todos = door.as_("u-chen").get("/v1/todos?limit=100")
    places = {name: [o["id"] for o in todos[name]] for name in ("waiting", "running", "recent")}
    assert waiting["id"] in places["waiting"]
    assert running["id"] in places["running"]
    assert places["recent"][0] == ended["id"]


def test_an_operator_cancels_and_retries_what_is_anybodys(door: Door) -> None:
    operator = door.as_("ops", OPERATOR)
    op = door.stage("u-lin", **new_customer())
    cancelled = operator.post(f"/v1/operations/{op['id']}/cancel", {"reason": "停机维护"})
    assert (cancelled["code"], cancelled["message"]) == (450, "停机维护")
    broken = door.stage("u-lin", **new_customer())
    engine = door.services.databases.store.engine
    with engine.begin() as connection:
        row = update(op_queue).where(op_queue.c.sId == broken["id"])
        connection.execute(row.values(sStatus="fail", iStatusCode=500, iAttempt=5))
    retried = operator.post(f"/v1/operations/{broken['id']}/retry")
    assert (retried["code"], retried["attempt"]) == (100, 0)
    door.execute(broken["id"])
    entries = operator.get(f"/v1/operations/{broken['id']}/journal")
    assert [(e["verb"], e["actor"]) for e in entries if e["actor"] == "ops"] == [("retry", "ops")]
    assert entries[-1]["code"] == 200


# --- revert ----------------------------------------------------------------------------------------------------------


def quotation(door: Door) -> dict[str, Any]:
    """Executed, with two parts, the first with two tiers."""
    customer = door.as_("u-lin").post("/v1/forms/customer/query", {"filter": {"invalid": False}})["items"][0]
    tiers = [{"quantity": 500, "price": "0.2"}, {"quantity": 5000, "price": "0.1"}]
    parts = [
        {"name": "封面", "quantity": 100, "price": "1.5", "color": "4+0", "tiers": tiers},
        {"name": "内页", "quantity": 200, "price": "0.25"},
    ]
    payload = {"customer": customer["id"], "title": word(), "memo": "一", "parts": parts}
    done = door.run("u-lin", formId="quotation", opType="create", payload=payload)
    assert done["code"] == 200, done
    return done


def update_of(door: Door, created: dict[str, Any], **payload: Any) -> dict[str, Any]:
    request = {"formId": created["formId"], "opType": "update", "record": created["resultBillId"]}
    done = door.run("u-lin", **request, payload=payload)
    assert done["code"] == 200, done
    return done


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """All that a payload could set is as it was; the lines' keys and order may differ."""

    def row(node: dict[str, Any]) -> Any:
        skipped = ("id", "createdAt")
        values = sorted((k, str(v)) for k, v in node["values"].items() if k not in skipped)
        children = [(k, sorted(map(row, lines))) for k, lines in sorted(node["children"].items())]
        return (values, children)

    return bool(row(before) == row(after))


def test_reverting_an_update_brings_the_old_values_back(door: Door) -> None:
    created = quotation(door)
    before = record_of(door, created)
    changed = update_of(door, created, title=word(), memo="二", deliveryDate="2027-01-31", taxRate="0.06")
    assert not same(before, record_of(door, created))
    back = reverted(door, changed)
    assert (back["code"], back["opType"]) == (200, "update"), back["error"]
    assert same(before, record_of(door, created))


def test_reverting_an_update_of_lines_puts_each_back(door: Door) -> None:
    created = quotation(door)
    before = record_of(door, created)
    cover, pages = before["children"]["parts"]
    first, second = cover["children"]["tiers"]
    lines = [
        {
            "id": cover["id"],
            "price": "9.99",
            "color": None,
            "tiers": [
                {"id": first["id"], "price": "8"},
                {"id": second["id"], "remove": True},
                {"quantity": 9000, "price": "0.05"},
            ],
        },
        {"id": pages["id"], "remove": True},
        {"name": "插页", "quantity": 5, "price": "3", "tiers": [{"quantity": 50, "price": "2"}]},
    ]
    changed = update_of(door, created, parts=lines)
    assert len(record_of(door, created)["children"]["parts"]) == 2
    back = reverted(door, changed)
    assert back["code"] == 200, back
    assert same(before, record_of(door, created))


def test_a_removed_line_comes_back_with_all_below_it(door: Door) -> None:
    created = quotation(door)
    before = record_of(door, created)
    cover = before["children"]["parts"][0]
    changed = update_of(door, created, parts=[{"id": cover["id"], "remove": True}])
    assert reverted(door, changed)["code"] == 200
    assert same(before, record_of(door, created))


def test_added_lines_that_cannot_be_told_apart_are_not_guessed_at(door: Door) -> None:
    created = quotation(door)
    twin = {"name": "插页", "quantity": 5, "price": "3"}
    update_of(door, created, parts=[twin])
    second = update_of(door, created, parts=[twin])
    path = f"/v1/operations/{second['id']}/revert"
    error = door.as_("u-lin").post(path, expect=422)["error"]
    assert error["code"] == "business_rule"
    assert "told apart" in error["message"]


def test_states_are_taken_back_and_forth(door: Door) -> None:
    created = quotation(door)

    def states() -> dict[str, bool]:
        return dict(record_of(door, created)["states"])

    for op_type, back, state in (
        ("examine", "cancelExamine", "examined"),
        ("invalid", "cancelInvalid", "invalid"),
        ("delete", "cancelInvalid", "invalid"),
    ):
        done = door.run("u-lin", formId="quotation", opType=op_type, record=created["resultBillId"])
        assert (done["code"], states()[state]) == (200, True), done
        undone = reverted(door, done)
        assert (undone["code"], undone["opType"], states()[state]) == (200, back, False), undone
        redone = reverted(door, undone)
        assert (redone["code"], states()[state]) == (200, True)
        assert reverted(door, redone)["code"] == 200


def test_reverting_a_create_makes_the_record_invalid(door: Door) -> None:
    created = quotation(door)
    undone = reverted(door, created)
    assert (undone["code"], undone["opType"]) == (200, "invalid")
    assert record_of(door, created)["states"]["invalid"] is True
    error = door.as_("u-lin").post(f"/v1/operations/{created['id']}/revert", expect=409)["error"]
    assert error["code"] == "state_conflict"  # invalid already


def test_what_somebody_changed_since_is_shown_before_it_is_overwritten(door: Door) -> None:
    created = quotation(door)
    changed = update_of(door, created, memo="二")
    update_of(door, created, memo="三")
    preparation = door.as_("u-lin", AGENT).post(f"/v1/operations/{changed['id']}/revert")
    (memo,) = [f for f in preparation["preview"]["fields"] if f["field"] == "memo"]
    assert (memo["old"], memo["new"]) == ("三", "一")


def test_what_has_no_inverse_is_refused_with_the_reason(door: Door, outsource: dict[str, Any]) -> None:
    waiting = door.stage("u-lin", **new_customer())
    path = f"/v1/operations/{waiting['id']}/revert"
    assert door.as_("u-lin").post(path, expect=409)["error"]["code"] == "state_conflict"
    chen = door.as_("u-chen")
    product = outsource["payload"]["lines"][0]["product"]
    lines = [{"product": product, "quantity": 3, "price": "1"}]
    request = {"formId": "purchase_requisition", "opType": "create"}
    made = door.run("u-chen", **request, payload={"department": "印刷部", "memo": word(), "lines": lines})
    assert made["code"] == 200, made
    deleted = door.run("u-chen", formId="purchase_requisition", opType="delete", record=made["resultBillId"])
    assert deleted["code"] == 200, deleted
    error = chen.post(f"/v1/operations/{deleted['id']}/revert", expect=422)["error"]
    assert "physically deleted" in error["message"]
    customer = door.run("u-lin", **new_customer())
    error = door.as_("u-lin").post(f"/v1/operations/{customer['id']}/revert", expect=403)["error"]
    assert error["code"] == "forbidden"  # u-lin may create customers, not make them invalid


def test_a_command_of_its_own_is_not_guessed_at(door: Door) -> None:
    payload = {"title": f"数字人{secrets.token_hex(3)}"}
    made = door.run("u-liu", formId="digital_human_project", opType="create", payload=payload)
    assert made["code"] == 200, made
    renamed = door.run(
        "u-liu",
        commandType="erp.digital_human_project.setTitle",
        record=made["resultBillId"],
        payload={"title": "新标题"},
    )
    assert renamed["code"] == 200, renamed
    error = door.as_("u-liu").post(f"/v1/operations/{renamed['id']}/revert", expect=422)["error"]
    assert error["code"] == "business_rule"


def test_an_approver_cannot_revert_what_they_approved(door: Door) -> None:
    op = door.stage("u-chen", **new_supplier())
    door.as_("u-qian").post(f"/v1/operations/{op['id']}/approve")
    door.execute(op["id"])
    assert door.as_("u-qian").get(f"/v1/operations/{op['id']}")["code"] == 200
    assert door.as_("u-qian").post(f"/v1/operations/{op['id']}/revert", expect=403)
