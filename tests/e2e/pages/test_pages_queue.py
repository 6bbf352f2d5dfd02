"""The queue: an operator's whole tenant with filters, the oldest that waits, and an operation's life as a timeline."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Route, expect
from sqlalchemy import update as sql_update

from staging.contracts.status import StatusCode
from staging.storage.tables import op_queue
from tests.e2e.pages.conftest import Visit
from tests.support.api import B002, OPERATOR, Door
from tests.support.browser import PHONE, Visitor
from tests.support.demo_papers import confirm
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier


def rows(visitor: Visitor) -> Locator:
    return visitor.page.locator("#rows tr")


def row(visitor: Visitor, op_id: str) -> Locator:
    return visitor.page.locator(f'#rows tr[data-id="{op_id}"]')


def narrow(visitor: Visitor, **wanted: str) -> None:
    """Fill in the filter by the names of its fields and apply it."""
    for name, value in wanted.items():
        field = visitor.page.locator(f'#filter [name="{name}"]')
        if field.evaluate("node => node.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    visitor.button("Filter").click()


def test_an_operator_sees_the_whole_company_and_no_other(door: Door, visit: Visit) -> None:
    ours, theirs = door.stage("u-chen", **new_supplier())["id"], door.stage("u-lin", **new_customer())["id"]
    elsewhere = door.stage("u-gao", B002, **new_customer())["id"]
    operator = visit("ops", OPERATOR, path="/")
    operator.page.wait_for_url("**/queue")  # an operator has no todos of their own
    expect(row(operator, ours)).to_contain_text("u-chen")
    expect(row(operator, theirs)).to_contain_text("u-lin")
    expect(row(operator, elsewhere)).to_have_count(0)
    expect(operator.page.get_by_role("link", name="My AI todos")).to_be_hidden()


def test_an_operator_reads_whose_turn_it_is_in_their_own_language(door: Door, visit: Visit) -> None:
    def first(form: str) -> str:
        found = door.as_("u-chen").post(f"/v1/forms/{form}/query", {"filter": {"invalid": False}})
        return str(found["items"][0]["id"])

    waits = door.stage("u-chen", **new_outsource_order(first("supplier"), first("product")))["id"]
    for locale, title, turn in (
        ("en-US", "Create outsource order", "waits for u-chen in the ERP's own form"),
        ("zh-CN", "新增外协加工单", "待u-chen在ERP表单中完成"),
    ):
        operator = visit("ops", OPERATOR, path="/queue", locale=locale)
        expect(row(operator, waits).get_by_role("rowheader")).to_contain_text(title)
        expect(row(operator, waits)).to_contain_text(turn)


def test_each_filter_narrows_the_list(door: Door, visit: Visit) -> None:
    old = door.stage("u-lin", **new_customer())["id"]
    failed = door.stage("u-chen", **new_supplier())["id"]
    door.as_("u-chen").post(f"/v1/operations/{failed}/cancel", {"reason": "不要了"})
    with door.services.databases.store.engine.begin() as connection:
        mine = op_queue.c.sId == old
        before = connection.execute(op_queue.select().where(mine)).mappings().one()["tCreateDate"]
        connection.execute(sql_update(op_queue).where(mine).values(tCreateDate=before - timedelta(days=1)))
    operator = visit("ops", OPERATOR, path="/queue")
    expect(row(operator, failed)).to_be_visible()
    for wanted, seen, hidden in (
        ({"status": "fail"}, failed, old),
        ({"code": "100"}, old, failed),
        ({"formId": "supplier"}, failed, old),
        ({"user": "u-lin"}, old, failed),
        ({"age": "20", "unit": "3600000"}, old, failed),
    ):
        operator.button("Reset").click()
        narrow(operator, **wanted)
        expect(row(operator, seen)).to_be_visible()
        expect(row(operator, hidden)).to_have_count(0)
    expect(operator.page.locator("#oldest")).to_contain_text("yesterday")
    operator.button("Oldest first").click()
    expect(rows(operator).first).to_have_attribute("data-id", old)
    narrow(operator, code="504")
    expect(operator.page.get_by_text("Nothing is like that.")).to_be_visible()


def test_an_answer_that_comes_late_does_not_replace_a_newer_one(door: Door, visit: Visit) -> None:
    waiting, failed = (
        door.stage("u-lin", **new_customer())["id"],
        door.stage("u-chen", **new_supplier())["id"],
    )
    door.as_("u-chen").post(f"/v1/operations/{failed}/cancel", {"reason": "不要了"})
    operator = visit("ops", OPERATOR, path="/queue")
    late: list[Route] = []

    def hold_the_unfiltered(route: Route) -> None:
        asked = route.request.post_data_json or {}
        if late or asked["filter"]:
            route.continue_()
        else:
            late.append(route)

    operator.page.route("**/v1/operations/query", hold_the_unfiltered)
    with operator.page.expect_request("**/v1/operations/query"):
        operator.button("Reset").click()
    narrow(operator, code="450")
    expect(row(operator, waiting)).to_have_count(0)
    with operator.page.expect_response(lambda response: response.request == late[0].request) as answer:
        late[0].continue_()
    answer.value.finished()
    operator.page.evaluate("fetch('/v1/me').then((response) => response.json())")  # by now it would be shown
    expect(row(operator, waiting)).to_have_count(0)
    expect(row(operator, failed)).to_be_visible()


def test_every_code_can_be_filtered_by_in_the_readers_words(door: Door, visit: Visit) -> None:
    operator = visit("ops", OPERATOR, path="/queue", locale="zh-CN")
    offered = operator.page.locator('#filter [name="code"] option').all_inner_texts()
    assert offered[1:] == [f"{int(code)} · {code.zh}" for code in StatusCode]


def test_the_timeline_tells_the_whole_life(door: Door, visit: Visit) -> None:
    op_id = door.stage("u-chen", conversationId="chat-3", **new_supplier())["id"]
    door.as_("u-qian").post(f"/v1/operations/{op_id}/approve")
    door.execute(op_id)
    operator = visit("ops", OPERATOR, path="/queue")
    row(operator, op_id).get_by_role("button", name="Events").click()
    steps = operator.page.locator(".timeline li")
    expect(steps).to_have_text(
        [
            re.compile(r"Confirmed.*\(104\).*u-chen"),
            re.compile(r"Approved.*\(100\).*u-qian"),
            re.compile(r"A worker began.*\(101\).*attempt 1"),
            re.compile(r"Ended.*\(200\)"),
        ]
    )
    expect(operator.page.locator("#timeline")).to_contain_text("Conversation chat-3")
    operator.shot("timeline-en-desktop")
    operator.page.keyboard.press("Escape")
    expect(operator.page.locator("#timeline")).to_be_hidden()
    expect(row(operator, op_id).get_by_role("button", name="Events")).to_be_focused()


def test_an_operator_cancels_and_retries_but_cannot_confirm_or_approve(door: Door, visit: Visit) -> None:
    stopped, again = (door.stage("u-lin", **new_customer())["id"] for _ in range(2))
    waits = door.stage("u-chen", **new_supplier())["id"]
    with door.services.databases.store.engine.begin() as connection:
        broken = sql_update(op_queue).where(op_queue.c.sId == again)
        connection.execute(broken.values(sStatus="fail", iStatusCode=500, sErrorMsg="worker lost"))
    operator = visit("ops", OPERATOR, path="/queue")
    expect(row(operator, waits).get_by_role("button")).to_have_text(["Events", "Cancel"])
    row(operator, stopped).get_by_role("button", name="Cancel").click()
    operator.page.get_by_label("Why?", exact=False).fill("系统维护")
    operator.button("Cancel it").click()
    expect(row(operator, stopped)).to_contain_text("系统维护")
    row(operator, again).get_by_role("button", name="Try again").click()
    expect(row(operator, again).locator(".badge")).to_contain_text("100")


def test_a_person_sees_their_own_read_only(door: Door, visit: Visit) -> None:
    own, other = door.stage("u-lin", **new_customer())["id"], door.stage("u-chen", **new_supplier())["id"]
    clerk = visit("u-lin", path="/queue")
    expect(row(clerk, own).get_by_role("button")).to_have_text(["Events"])
    expect(row(clerk, other)).to_have_count(0)
    expect(clerk.page.locator("#user-filter")).to_be_hidden()


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"], ids=["zh", "en"])
def test_the_queue_on_a_phone(locale: str, door: Door, visit: Visit) -> None:
    op_id = door.run("u-lin", **new_customer())["id"]
    door.stage("u-lin", **new_customer())
    operator = visit("ops", OPERATOR, path="/queue", locale=locale, viewport=PHONE)
    expect(row(operator, op_id)).to_be_visible()
    assert operator.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    operator.shot(f"queue-{locale[:2]}-phone")


def test_the_queue_moves_by_itself_and_turns_pages(door: Door, visit: Visit) -> None:
    operator = visit("ops", OPERATOR, path="/queue")
    expect(operator.page.locator("#live")).to_have_text("Live")
    prepared = door.prepare("u-lin", items=[new_customer() for _ in range(60)])
    confirm(door, "u-lin", prepared["preparationId"])
    narrow(operator, user="u-lin", code="100")
    expect(rows(operator)).to_have_count(50)
    operator.button("Next").click()
    expect(operator.page.locator("#page")).to_contain_text("Page 2")
    operator.button("Previous").click()
    expect(operator.page.locator("#page")).to_contain_text("Page 1")
    operator.button("Reset").click()
    op_id = door.stage("u-lin", **new_customer())["id"]
    expect(rows(operator).first).to_have_attribute("data-id", op_id)  # by itself, on the event
    door.execute(op_id)
    expect(row(operator, op_id).locator(".badge")).to_contain_text("200")
