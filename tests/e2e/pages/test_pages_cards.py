"""Cards of operations: why something was refused, in words, and after each refusal a way on in one click."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect
from sqlalchemy import update as sql_update

from staging.storage.tables import op_queue
from tests.e2e.pages.conftest import Visit, click, confirmed, opened
from tests.support.api import Door
from tests.support.demo_papers import confirm, quotation, some, update
from tests.support.demo_requests import new_customer, new_supplier, word
from tests.support.queue_rows import foreign_insert


def test_drift_before_the_confirm_shows_seen_now_proposed_and_restages_in_one_click(
    door: Door, visit: Visit
) -> None:
    customer = door.run("u-lin", **new_customer(phone="1", type="direct"))["resultBillId"]
    clerk, card = opened(door, visit, "u-lin", **update("customer", customer, phone="3", type="online"))
    door.run("u-lin", **update("customer", customer, phone="2", type="agent"))
    click(card, "Confirm")
    rows = card.locator(".conflict tbody tr")
    expect(rows.nth(0)).to_have_text(re.compile("Type.*Direct.*Agent.*Online"))
    expect(rows.nth(1)).to_have_text(re.compile("Phone.*1.*2.*3"))
    expect(card.get_by_role("button", name="Confirm", exact=True)).to_have_count(0)
    clerk.shot("drift-en-desktop")
    click(card, "Prepare again as things are now")
    again = clerk.page.locator("#preparations article")
    expect(again.locator("del")).to_have_text(["Agent", "2"])
    expect(again.locator("ins")).to_have_text(["Online", "3"])
    click(again, "Confirm")
    door.execute(confirmed(clerk, door, "u-lin")["id"])
    assert door.as_("u-lin").get(f"/v1/forms/customer/records/{customer}")["values"]["phone"] == "3"


def test_drift_at_execution_leaves_a_card_that_restages(door: Door, visit: Visit) -> None:
    customer = door.run("u-lin", **new_customer(phone="1"))["resultBillId"]
    late = door.stage("u-lin", **update("customer", customer, phone="3"))["id"]
    door.run("u-lin", **update("customer", customer, phone="2"))
    door.execute(late)
    clerk = visit("u-lin")
    card = clerk.card(late)
    expect(card.locator(".badge")).to_contain_text("409")
    expect(card.locator(".conflict tbody tr")).to_have_text(re.compile("Phone.*1.*2.*3"))
    click(card, "Prepare again as things are now")
    again = clerk.page.locator("#preparations article")
    expect(again.locator("del")).to_have_text("2")
    click(again, "Confirm")
    assert confirmed(clerk, door, "u-lin")["payload"] == {"phone": "3"}


def test_a_possible_duplicate_is_submitted_anyway(door: Door, visit: Visit) -> None:
    request = new_customer()
    prepared = door.prepare("u-lin", **request)["preparationId"]
    door.run("u-lin", **request)
    op_id = confirm(door, "u-lin", prepared)
    door.execute(op_id)
    clerk = visit("u-lin")
    card = clerk.card(op_id)
    expect(card.locator(".problem")).to_contain_text("may duplicate")
    click(card, "Submit anyway")
    again = clerk.page.locator("#preparations article")
    expect(again.locator(".warning")).to_contain_text("may duplicate")
    click(again, "Submit anyway")
    second = confirmed(clerk, door, "u-lin")["id"]
    door.execute(second)
    expect(clerk.page.locator(f'#recent [id="op-{second}"] .badge')).to_contain_text("200")


def test_an_edit_that_makes_a_duplicate_asks_on_the_card(door: Door, visit: Visit) -> None:
    name = word()
    door.run("u-lin", **new_customer(name=name))
    clerk, card = opened(door, visit, "u-lin", **new_customer())
    click(card, "Edit values")
    card.get_by_label("Name", exact=False).first.fill(name)
    click(card, "Confirm with my changes")
    expect(card.locator(".problem")).to_contain_text('may duplicate "KH')
    click(card.locator(".problem"), "Submit anyway")
    assert confirmed(clerk, door, "u-lin")["payload"]["name"] == name


def test_what_a_rule_refused_says_why_and_can_be_prepared_again(door: Door, visit: Visit) -> None:
    """The second examination finds the document examined."""
    bill = door.run("u-lin", **quotation(some(door, "customer")["id"]))["resultBillId"]
    examine = {"formId": "quotation", "opType": "examine", "record": bill}
    first, second = (door.stage("u-lin", **examine)["id"] for _ in range(2))
    door.execute(first)
    door.execute(second)
    clerk = visit("u-lin")
    card = clerk.card(second)
    expect(card.locator(".problem")).to_contain_text("examined")
    click(card, "Prepare again as things are now")
    expect(card.locator(".again")).to_contain_text("examined")  # refused again, told on the card itself


def test_cancel_keeps_the_reason_and_going_back_cancels_nothing(door: Door, visit: Visit) -> None:
    op_id = door.stage("u-lin", **new_customer())["id"]
    clerk = visit("u-lin")
    click(clerk.card(op_id), "Cancel")
    clerk.page.keyboard.press("Escape")
    expect(clerk.page.locator("dialog")).to_have_count(0)
    assert door.as_("u-lin").get(f"/v1/operations/{op_id}")["code"] == 100
    click(clerk.card(op_id), "Cancel")
    clerk.page.get_by_label("Why?", exact=False).fill("客户改主意了")
    click(clerk.page.locator("dialog"), "Cancel it")
    ended = clerk.page.locator(f'#recent [id="op-{op_id}"]')
    expect(ended).to_contain_text("客户改主意了")
    expect(ended.locator(".badge")).to_contain_text("450")


def test_retry_is_offered_where_it_is_allowed_and_nowhere_else(door: Door, visit: Visit) -> None:
    ids = {code: door.stage("u-lin", **new_customer())["id"] for code in (423, 500, 504, 422)}
    with door.services.databases.store.engine.begin() as connection:
        for code, op_id in ids.items():
            row = sql_update(op_queue).where(op_queue.c.sId == op_id)
            connection.execute(row.values(sStatus="fail", iStatusCode=code, sErrorMsg="…"))
    clerk = visit("u-lin")
    for code, op_id in ids.items():
        buttons = clerk.card(op_id).get_by_role("button", name="Try again", exact=True)
        expect(buttons).to_have_count(0 if code == 422 else 1)
    click(clerk.card(ids[500]), "Try again")
    expect(clerk.page.locator(f'#running [id="op-{ids[500]}"] .badge')).to_contain_text("100")


def test_an_unknown_outcome_asks_not_to_submit_again(door: Door, visit: Visit) -> None:
    op_id = door.stage("u-lin", **new_customer())["id"]
    with door.services.databases.store.engine.begin() as connection:
        connection.execute(sql_update(op_queue).where(op_queue.c.sId == op_id).values(iStatusCode=102))
    clerk = visit("u-lin")
    expect(clerk.card(op_id).locator(".warning")).to_contain_text("do not submit it again")
    expect(clerk.card(op_id).get_by_role("button")).to_have_count(0)


def test_approve_and_reject_by_the_second_person_only(door: Door, visit: Visit) -> None:
    yes, no = (door.stage("u-chen", **new_supplier())["id"] for _ in range(2))
    maker = visit("u-chen")
    expect(maker.card(yes).get_by_role("button", name="Approve")).to_have_count(0)
    approver = visit("u-qian")
    expect(approver.card(yes).locator(".badge")).to_contain_text("waits for your approval")
    click(approver.card(yes), "Approve")
    expect(approver.card(yes)).to_have_count(0)
    click(approver.card(no), "Reject")
    approver.page.get_by_label("Why?", exact=False).fill("资质不全")
    click(approver.page.locator("dialog"), "Reject")
    expect(maker.page.locator(f'#recent [id="op-{no}"]')).to_contain_text("资质不全")
    expect(maker.card(yes)).to_contain_text("Approver u-qian")
    door.execute(yes)
    expect(maker.page.locator(f'#recent [id="op-{yes}"] .badge')).to_contain_text("200")


def test_take_it_back_prepares_the_inverse(door: Door, visit: Visit) -> None:
    done = door.run("u-lin", **update("customer", some(door, "customer", position=5)["id"], phone=word()))
    clerk = visit("u-lin")
    click(clerk.card(done["id"]), "Take it back")
    inverse = clerk.page.locator("#preparations article")
    expect(inverse.locator("del")).to_have_text(done["payload"]["phone"])
    click(inverse, "Drop")
    expect(clerk.page.locator("#preparations article")).to_have_count(0)
    expect(clerk.page.locator("#notice")).to_contain_text("Nothing was changed")


def test_a_link_to_what_was_confirmed_or_has_gone(door: Door, visit: Visit) -> None:
    prepared = door.prepare("u-lin", **new_customer())["preparationId"]
    op_id = confirm(door, "u-lin", prepared)
    clerk = visit("u-lin", path=f"/?preparation={prepared}")
    expect(clerk.page.locator("#notice")).to_contain_text("confirmed already")
    expect(clerk.card(op_id)).to_be_focused()
    clerk.page.goto("/?preparation=no-such-thing")
    expect(clerk.page.locator("#notice")).to_contain_text("does not exist or has expired")


def test_a_row_of_foreign_sql_is_shown_by_its_payload(door: Door, visit: Visit) -> None:
    payload = {
        "title": "手提袋",
        "validDays": 15,
        "parts": [{"name": "袋身", "quantity": 1000, "price": "2.3"}],
    }
    with door.services.databases.store.engine.begin() as connection:
        op_id = foreign_insert(
            connection,
            sBrandsId="B001",
            sSubsidiaryId="S01",
            sMakePerson="u-lin",
            sOpType="create",
            sTargetFormId="quotation",
            sPayload=json.dumps(payload, ensure_ascii=False),
            bAutoExecute=1,
        )
    clerk = visit("u-lin")
    card = clerk.card(op_id)
    expect(card.locator("h3")).to_have_text("Create quotation 手提袋")
    card.get_by_text("What changes").click()
    for text in ("Valid for days", "Parts (1)", "袋身", "1,000"):
        expect(card.get_by_text(text, exact=True).first).to_be_visible()
