"""What a person changes on a card: each value by its type, lines and lines below, and what comes of it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.pages.conftest import Visit, click, confirmed, opened
from tests.support.api import Door
from tests.support.demo_papers import quotation, some, update
from tests.support.demo_requests import new_customer, word


def test_each_type_of_field_is_edited_and_executed_as_edited(door: Door, visit: Visit) -> None:
    other = some(door, "customer", position=3)
    clerk, card = opened(door, visit, "u-lin", **quotation(some(door, "customer")["id"]))
    click(card, "Edit values")
    name = word()
    card.get_by_label("Title", exact=False).fill(name)
    card.get_by_label("Quoted on", exact=False).fill("2026-12-24")
    card.get_by_label("Payment").select_option(label="Prepaid")
    card.get_by_label("Valid for days").fill("45")
    card.get_by_label("Tax rate").fill("0.09")
    card.get_by_text("More fields").click()
    card.get_by_label("Memo").fill("第一行\n第二行")
    search = card.get_by_role("combobox", name="Customer")
    search.fill(other["values"]["number"])
    option = card.get_by_role("listbox").get_by_role("option")
    expect(option).to_have_count(1)
    search.press("ArrowDown")
    search.press("Enter")
    expect(search).to_have_value(re.compile(other["values"]["name"]))
    card.get_by_label("Price", exact=True).first.fill("2")
    clerk.shot("editing-en-desktop")
    click(card, "Confirm with my changes")
    operation = confirmed(clerk, door, "u-lin")
    door.execute(operation["id"])
    expect(clerk.page.locator(f'#recent [id="op-{operation["id"]}"] .badge')).to_contain_text("200")
    bill = door.as_("u-lin").get(f"/v1/operations/{operation['id']}")["resultBillId"]
    record = door.as_("u-lin").get(f"/v1/forms/quotation/records/{bill}")
    wanted = {
        "title": name,
        "quoteDate": "2026-12-24",
        "payTerm": "prepaid",
        "validDays": 45,
        "taxRate": "0.0900",
    }
    wanted |= {"memo": "第一行\n第二行", "customer": other["id"], "totalAmount": "14625.00"}
    assert {key: record["values"][key] for key in wanted} == wanted
    parts = record["children"]["parts"]
    assert [p["values"]["price"] for p in parts] == ["2.0000", "0.9250"]
    assert [t["values"]["price"] for t in parts[0]["children"]["tiers"]] == ["1.6200", "1.4800"]


def test_a_boolean_and_an_emptied_field(door: Door, visit: Visit) -> None:
    line = {"product": some(door, "product")["id"], "quantity": "3"}
    payload = {"department": "生产部", "reason": "试产", "lines": [line]}
    clerk, card = opened(
        door, visit, "u-chen", formId="purchase_requisition", opType="create", payload=payload
    )
    expect(card.get_by_text("no", exact=True)).to_be_visible()
    click(card, "Edit values")
    card.get_by_label("Urgent").select_option(label="yes")
    card.get_by_label("Reason").fill("")
    click(card, "Confirm with my changes")
    assert (stored := confirmed(clerk, door, "u-chen")["payload"])["urgent"] is True
    assert "reason" not in stored


def test_check_first_shows_the_new_totals_before_anything_is_confirmed(door: Door, visit: Visit) -> None:
    clerk, card = opened(door, visit, "u-lin", **quotation(some(door, "customer")["id"]))
    click(card, "Edit values")
    card.get_by_label("Quantity", exact=True).first.fill("6000")
    click(card, "Check first")
    again = clerk.page.locator("#preparations article")
    expect(again.get_by_text("15,725.00")).to_be_visible()  # 6000 × 1.85 + 5000 × 0.925
    expect(again).to_have_count(1)
    expect(again).to_be_focused()
    click(again, "Confirm")
    operation = confirmed(clerk, door, "u-lin")
    assert operation["payload"]["totalAmount"] == "15725.00"
    assert operation["payload"]["parts"][0]["tiers"][1]["price"] == "1.4800"


def test_lines_of_a_stored_document_are_changed_removed_and_added(door: Door, visit: Visit) -> None:
    made = door.run("u-lin", **quotation(some(door, "customer")["id"]))
    bill = made["resultBillId"]
    first, second = door.as_("u-lin").get(f"/v1/forms/quotation/records/{bill}")["children"]["parts"]
    parts = [
        {
            "id": first["id"],
            "price": "1.9",
            "tiers": [{"id": first["children"]["tiers"][0]["id"], "remove": True}],
        },
        {"id": second["id"], "remove": True},
        {"name": "书签", "quantity": "100", "price": "0.5"},
    ]
    clerk, card = opened(door, visit, "u-lin", **update("quotation", bill, parts=parts))
    for text in ("changed", "removed", "added", "1.8500", "1.9000", "书签"):
        expect(card.get_by_text(text, exact=True).first).to_be_visible()
    click(card, "Edit values")
    card.get_by_label("Price", exact=True).first.fill("1.95")
    click(card, "Confirm with my changes")
    operation = confirmed(clerk, door, "u-lin")
    door.execute(operation["id"])
    now = door.as_("u-lin").get(f"/v1/forms/quotation/records/{bill}")
    assert [p["values"]["price"] for p in now["children"]["parts"]] == ["1.9500", "0.5000"]
    assert len(now["children"]["parts"][0]["children"]["tiers"]) == 1
    assert now["values"]["totalAmount"] == "9800.00"


def test_a_bad_value_is_told_at_its_field_and_can_be_corrected(door: Door, visit: Visit) -> None:
    clerk, card = opened(door, visit, "u-lin", **quotation(some(door, "customer")["id"]))
    click(card, "Edit values")
    days, price = card.get_by_label("Valid for days"), card.get_by_label("Price", exact=True).nth(1)
    days.fill("一百")
    price.fill("1,000")
    click(card, "Confirm with my changes")
    for field in (days, price):
        expect(field).to_have_attribute("aria-invalid", "true")
        told = clerk.page.locator(f'[id="{field.get_attribute("aria-describedby")}"]')
        expect(told).to_contain_text("not a plain number")
    expect(days).to_be_focused()
    days.fill("30")
    price.fill("1.7")
    click(card, "Confirm with my changes")
    tiers = confirmed(clerk, door, "u-lin")["payload"]["parts"][0]["tiers"]
    assert tiers[0]["price"] == "1.7000"


def test_a_commands_card_offers_only_its_own_input(door: Door, visit: Visit) -> None:
    listing = {"filter": {"listed": True}, "page": {"size": 1}}
    product = door.as_("u-zhao").post("/v1/forms/product_listing/query", listing)["items"][0]["values"][
        "product"
    ]
    order = {"customer": some(door, "customer")["id"], "lines": [{"product": product, "quantity": "1"}]}
    request = {"commandType": "erp.sales_order.create", "payload": order}
    clerk, card = opened(door, visit, "u-zhao", **request)
    expect(card.locator("h3")).to_contain_text("Create sales order")
    click(card, "Edit values")
    expect(card.get_by_label("Price", exact=True)).to_have_count(0)  # prices come from the product
    card.get_by_label("Quantity", exact=True).fill("2")
    click(card, "Check first")
    expect(clerk.page.locator("#preparations article").get_by_text("2.000")).to_be_visible()


def test_several_operations_are_one_card_and_each_can_be_edited(door: Door, visit: Visit) -> None:
    names = [word(), word()]
    items = [new_customer(name=name) for name in names]
    clerk, card = opened(door, visit, "u-lin", items=items)
    expect(card.locator("h3")).to_have_text("2 operations")
    click(card, "Edit values")
    second = card.locator("section.item").nth(1)
    second.get_by_text("More fields").click()
    second.get_by_label("City").fill("苏州")
    click(card, "Confirm with my changes")
    confirmed(clerk, door, "u-lin")
    found = door.as_("u-lin").post("/v1/operations/query", {"page": {"size": 2}})["items"]
    assert {o["payload"]["name"]: o["payload"].get("city") for o in found} == {
        names[0]: None,
        names[1]: "苏州",
    }
