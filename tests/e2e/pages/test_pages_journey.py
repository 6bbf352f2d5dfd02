"""The main job as the clerk sees it: an agent's proposal is read, confirmed, executed by a real worker, and found in
the ERP, on a page that moves by itself."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.pages.conftest import Visit
from tests.support.api import Door
from tests.support.browser import DESKTOP, PHONE
from tests.support.demo_papers import quotation, some
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier
from tests.support.processes import WorkerProcess

ZH = {"confirm": "确认", "open": "打开单据", "executed": "执行成功", "title": "新增报价单", "total": "总金额"}
EN = {
    "confirm": "Confirm",
    "open": "Open the record",
    "executed": "executed",
    "title": "Create quotation",
    "total": "Total",
}


@pytest.mark.parametrize(
    ("locale", "words", "by_worker"), [("zh-CN", ZH, True), ("en-US", EN, False)], ids=["zh", "en"]
)
def test_from_the_chats_link_to_the_executed_document(
    locale: str, words: dict[str, str], by_worker: bool, door: Door, visit: Visit, tmp_path: Path
) -> None:
    customer, chat = some(door, "customer"), f"chat-{locale}-7"
    prepared = door.prepare("u-lin", conversationId=chat, **quotation(customer["id"]))
    clerk = visit("u-lin", locale=locale, path=f"/?preparation={prepared['preparationId']}")
    card = clerk.card(prepared["preparationId"])
    expect(card.locator("h3")).to_contain_text(words["title"])
    for text in (
        customer["values"]["name"],
        "157g 铜版纸",
        "10,000.000",
        "1.4800",
        words["total"],
        "13,875.00",
        chat,
    ):
        expect(card.get_by_text(text).first).to_be_visible()
    expect(card.locator("section.lines")).to_have_count(2)  # the parts, and the tiers of the first
    clerk.shot(f"preparation-{locale[:2]}-desktop")

    clerk.page.evaluate("window.sameDocument = true")
    card.get_by_role("button", name=words["confirm"], exact=True).click()
    expect(card).to_have_count(0)
    running = clerk.page.locator("#running article", has_text=chat)  # others of this run may wait there too
    expect(running.locator(".badge")).to_contain_text("100")
    op_id = (running.get_attribute("id") or "").removeprefix("op-")
    assert clerk.page.url == f"{door.url}/"

    ended = clerk.page.locator(f'#recent [id="op-{op_id}"]')
    with WorkerProcess(door.env, tmp_path, name="journey") if by_worker else nullcontext():
        if not by_worker:
            door.execute(op_id)
        expect(ended.locator(".badge")).to_contain_text(words["executed"], timeout=20_000)
    assert clerk.page.evaluate("window.sameDocument") is True
    expect(ended).to_contain_text(chat)
    expect(clerk.page.locator("#notice")).to_contain_text(words["executed"])

    done = door.as_("u-lin").get(f"/v1/operations/{op_id}")
    assert (done["code"], done["link"]) == (200, f"/form/quotation?bill={done['resultBillId']}")
    ended.get_by_role("link", name=words["open"]).click()
    expect(clerk.page.locator("#form h2")).to_contain_text("BJD")
    expect(clerk.page.get_by_text("13,875.00")).to_be_visible()
    record = door.as_("u-lin").get(f"/v1/forms/quotation/records/{done['resultBillId']}")
    assert record["values"]["totalAmount"] == "13875.00"


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"], ids=["zh", "en"])
@pytest.mark.parametrize(
    ("name", "options"),
    [("desktop", {"viewport": DESKTOP}), ("phone", {"viewport": PHONE, "color_scheme": "dark"})],
    ids=["desktop", "phone"],
)
def test_a_clerks_day_at_a_glance(
    name: str, options: dict[str, Any], locale: str, door: Door, visit: Visit
) -> None:
    """What waits, what runs and what ended, each in its place; kept as a screenshot."""
    supplier, product = some(door, "supplier")["id"], some(door, "product")["id"]
    waits = door.stage("u-chen", conversationId="chat-9", **new_outsource_order(supplier, product))["id"]
    approval = door.stage("u-chen", **new_supplier())["id"]
    failed = door.stage("u-chen", **new_supplier())["id"]
    door.as_("u-qian").post(f"/v1/operations/{failed}/reject", {"reason": "已有同类供应商"})
    clerk = visit("u-chen", locale=locale, **options)
    for place, op_id, code in (
        ("waiting", waits, "103"),
        ("running", approval, "104"),
        ("recent", failed, "450"),
    ):
        expect(clerk.page.locator(f'#{place} [id="op-{op_id}"] .badge')).to_contain_text(code)
    expect(clerk.card(failed)).to_contain_text("已有同类供应商")
    assert clerk.page.title().startswith("(")
    assert clerk.page.evaluate("document.documentElement.scrollWidth") <= clerk.page.viewport_size["width"]  # type: ignore[index]
    clerk.shot(f"todos-{locale[:2]}-{name}")
    approver = visit("u-qian", locale=locale, **options)
    expect(approver.page.locator(f'#waiting [id="op-{approval}"]')).to_be_visible()
    assert approver.card(waits).count() == 0
    approver.shot(f"approval-{locale[:2]}-{name}")


def test_an_operation_confirmed_elsewhere_appears_and_moves_without_a_reload(
    door: Door, visit: Visit
) -> None:
    clerk = visit("u-lin")
    expect(clerk.page.locator("#live")).to_have_text("Live")
    clerk.page.evaluate("window.sameDocument = true")
    op_id = door.stage("u-lin", **new_customer())["id"]
    expect(clerk.page.locator(f'#running [id="op-{op_id}"]')).to_be_visible()
    door.execute(op_id)
    expect(clerk.page.locator(f'#recent [id="op-{op_id}"] .badge')).to_contain_text("200")
    assert clerk.page.evaluate("window.sameDocument") is True


def test_what_is_open_stays_open_while_others_move(door: Door, visit: Visit) -> None:
    first, second = (door.stage("u-lin", **new_customer())["id"] for _ in range(2))
    clerk = visit("u-lin")
    folded = clerk.card(first).locator("details.what")
    folded.locator("summary").click()
    expect(folded).to_have_attribute("open", "")
    clerk.card(first).locator("summary").last.focus()
    door.execute(second)
    expect(clerk.page.locator(f'#recent [id="op-{second}"]')).to_be_visible()
    expect(folded).to_have_attribute("open", "")
    expect(clerk.card(first).locator("summary").last).to_be_focused()
