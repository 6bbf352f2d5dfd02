"""The manual path, walked to its end: 103 opens the ERP's own form prefilled, saving there completes the operation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import expect

from staging.api.pages import native
from staging.contracts.error import ErrorCode
from staging.domain.identity import ActorKind
from tests.e2e.pages.conftest import Visit
from tests.support.api import AGENT, OPERATOR, SERVICE, Door
from tests.support.browser import PHONE
from tests.support.demo_papers import quotation, some
from tests.support.demo_requests import new_outsource_order
from tests.support.queue_rows import foreign_insert
from workers.erp.sql.adapter import SqlAdapter


def staged(door: Door, **payload: Any) -> dict[str, Any]:
    """u-chen's outsource order at 103."""
    order = new_outsource_order(some(door, "supplier")["id"], some(door, "product")["id"], **payload)
    operation = door.stage("u-chen", conversationId="chat-5", **order)
    assert operation["code"] == 103
    return operation


def count(door: Door) -> int:
    return int(door.as_("u-chen").post("/v1/forms/outsource_order/query", {})["page"]["total"])


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"], ids=["zh", "en"])
def test_from_the_todo_through_the_erps_form_to_done(locale: str, door: Door, visit: Visit) -> None:
    zh = locale == "zh-CN"
    operation, product = staged(door), some(door, "product", position=1)
    clerk = visit("u-chen", locale=locale)
    clerk.card(operation["id"]).get_by_role(
        "link", name="去ERP完成" if zh else "Complete it in the ERP"
    ).click()
    clerk.page.wait_for_url(f"**/form/outsource_order?staging={operation['id']}")
    form = clerk.page.locator("#form form")
    supplier = form.get_by_role("combobox", name="供应商" if zh else "Supplier")
    expect(supplier).to_have_value(some(door, "supplier")["label"])  # its name, not its id
    price = form.get_by_label("单价" if zh else "Price", exact=False)
    expect(price).to_have_value("1.2500")
    price.fill("1.5")
    clerk.shot(f"native-form-{locale[:2]}")

    clerk.button("增加一行" if zh else "Add line").click()
    line = form.locator(".rows > li").nth(1)
    search = line.get_by_role("combobox")
    search.fill(product["values"]["number"])
    line.get_by_role("listbox").get_by_role("option").first.click()
    line.get_by_label("加工工艺" if zh else "Process").fill("烫金")
    line.get_by_label("数量" if zh else "Quantity").fill("20")
    line.get_by_label("单价" if zh else "Price").fill("0.25")
    clerk.button("保存" if zh else "Save").click()

    expect(clerk.page.locator("#form .badge")).to_contain_text("200")
    done = door.as_("u-chen").get(f"/v1/operations/{operation['id']}")
    assert (done["status"], done["code"]) == ("success", 200)
    assert clerk.page.url == f"{door.url}{done['link']}"
    record = door.as_("u-chen").get(f"/v1/forms/outsource_order/records/{done['resultBillId']}")
    assert record["values"]["totalAmount"] == "20.00"  # 10 × 1.5 + 20 × 0.25
    assert record["values"]["billNo"].startswith("WWD")
    assert [line["values"]["process"] for line in record["children"]["lines"]] == ["覆膜", "烫金"]
    verbs = [e["verb"] for e in door.as_("u-chen").get(f"/v1/operations/{operation['id']}/journal")]
    assert verbs == ["submit", "complete"]
    clerk.page.reload()
    expect(clerk.page.locator("#form h2")).to_contain_text(record["values"]["billNo"])
    clerk.shot(f"native-record-{locale[:2]}")


def test_what_the_erp_refuses_is_told_at_the_field_and_nothing_is_saved(door: Door, visit: Visit) -> None:
    operation, before = staged(door), count(door)
    clerk = visit("u-chen", path=operation["link"], viewport=PHONE)
    price = clerk.page.locator("#form form").get_by_label("Price", exact=False)
    price.fill("一块")
    clerk.button("Save").click()
    expect(price).to_have_attribute("aria-invalid", "true")
    assert clerk.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert count(door) == before
    assert door.as_("u-chen").get(f"/v1/operations/{operation['id']}")["code"] == 103


def test_saving_twice_makes_one_record(door: Door) -> None:
    """The answer to the first save got lost: the second gives the same record."""
    operation, before = staged(door), count(door)
    chen = door.as_("u-chen")
    prefill = chen.get(f"/v1/operations/{operation['id']}/prefill")
    filled = {k: v for k, v in prefill["values"].items() if k not in ("totalAmount", "lines")}
    filled["lines"] = [
        {k: v for k, v in line.items() if k != "amount"} for line in prefill["values"]["lines"]
    ]
    body = {"staging": operation["id"], "values": filled}
    first = chen.post("/form/outsource_order", body)
    assert chen.post("/form/outsource_order", body | {"values": {**filled, "memo": "again"}}) == first
    assert count(door) == before + 1
    done = chen.post(f"/v1/operations/{operation['id']}/complete", first)
    assert done["resultBillId"] == first["resultBillId"]
    refused = chen.post("/form/outsource_order", body, expect=409)
    assert refused["error"]["code"] == ErrorCode.STATE_CONFLICT


@pytest.mark.parametrize("kind", [AGENT, SERVICE, OPERATOR])
def test_only_a_person_saves_a_form(kind: ActorKind, door: Door) -> None:
    operation, before = staged(door), count(door)
    body = {"staging": operation["id"], "values": operation["payload"]}
    refused = door.as_("u-chen", kind).post("/form/outsource_order", body, expect=403)
    assert refused["error"]["code"] == ErrorCode.FORBIDDEN
    assert count(door) == before


def test_somebody_elses_todo_is_as_missing(door: Door, visit: Visit) -> None:
    operation = staged(door)
    refused = door.as_("u-zhao").post(
        "/form/outsource_order", {"staging": operation["id"], "values": {}}, expect=404
    )
    assert refused["error"]["code"] == ErrorCode.OPERATION_NOT_FOUND
    stranger = visit("u-zhao", path=operation["link"])
    expect(stranger.page.locator("#notice")).to_contain_text("was not found")


def test_an_operation_of_another_form_is_not_saved_through_this_one(door: Door) -> None:
    operation = staged(door)
    body = {"staging": operation["id"], "values": {}}
    assert (
        door.as_("u-chen").post("/form/supplier", body, expect=404)["error"]["code"]
        == ErrorCode.FORM_NOT_FOUND
    )


def test_a_row_that_an_agent_inserted_for_the_user_is_completed_too(door: Door, visit: Visit) -> None:
    """Plain SQL with bAutoExecute = 0, references by name: it goes on to 103."""
    request = quotation(some(door, "customer")["values"]["number"])["payload"]
    with door.services.databases.store.engine.begin() as connection:
        op_id = foreign_insert(connection, sPayload=json.dumps(request, ensure_ascii=False), bAutoExecute=0)
    door.execute(op_id)
    clerk = visit("u-lin")
    clerk.card(op_id).get_by_role("link").click()
    form = clerk.page.locator("#form form")
    expect(form.get_by_label("Title", exact=False)).to_have_value(request["title"])
    clerk.button("Save").click()
    expect(clerk.page.locator("#form .badge")).to_contain_text("200")
    expect(clerk.page.get_by_text("13,875.00")).to_be_visible()


def test_the_form_is_the_demo_erps_only() -> None:
    app = FastAPI()
    before = len(app.routes)
    native.install(
        app, SqlAdapter.__new__(SqlAdapter)
    )  # the generic adapter, for an ERP that has forms of its own
    assert len(app.routes) == before
