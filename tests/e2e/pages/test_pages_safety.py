"""What a page must never do: run what came as data, load from elsewhere, lose its live stream for good."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.pages.conftest import Visit
from tests.support.api import OPERATOR, PERSON, Door
from tests.support.demo_papers import quotation, some, update
from tests.support.demo_requests import new_customer, word
from tests.support.queue_rows import foreign_insert
from tests.support.waiting import wait_until

MARKUP = "<img src=x onerror=alert(1)>{{7*7}}${7*7}<script>alert(2)</script>"


def hostile(**payload: Any) -> dict[str, Any]:
    return new_customer(name=f"{MARKUP} {word()}"[:100], memo=MARKUP, contact=MARKUP[:50], **payload)


def assert_only_text(visitor: Any) -> None:
    main = visitor.page.locator("body")
    assert main.locator("img").count() == 0
    assert main.locator("script:not([type='application/json']):not([src^='/static/'])").count() == 0


def test_markup_of_erp_and_payload_is_text_wherever_it_is_shown(door: Door, visit: Visit) -> None:
    done = door.run("u-zhao", **hostile(), conversationId=MARKUP[:60])
    bill = done["resultBillId"]
    prepared = door.prepare("u-zhao", **update("customer", bill, memo=f"{MARKUP}2", name=f"{MARKUP}3"))[
        "preparationId"
    ]
    cancelled = door.stage("u-zhao", **hostile())["id"]
    door.as_("u-zhao").post(f"/v1/operations/{cancelled}/cancel", {"reason": MARKUP})
    payload = {"name": MARKUP, MARKUP[:40]: MARKUP, "lines": [{MARKUP[:40]: MARKUP}]}
    with door.services.databases.store.engine.begin() as connection:
        row = {"sMakePerson": "u-zhao", "sTargetFormId": "customer", "sPayload": json.dumps(payload)}
        foreign = foreign_insert(connection, **row)
    clerk = visit("u-zhao", path=f"/?preparation={prepared}")
    for folded in clerk.page.locator("details > summary").all():
        folded.click()
    for identifier in (prepared, done["id"], cancelled, foreign):
        expect(clerk.card(identifier)).to_contain_text("<img src=x onerror=alert(1)>{{7*7}}${7*7}<sc")
    assert_only_text(clerk)
    clerk.button("Edit values").click()
    expect(clerk.card(prepared).get_by_label("Memo")).to_have_value(f"{MARKUP}2")
    door.run("u-zhao", **update("customer", bill, memo="other"))
    clerk.button("Confirm with my changes").click()
    expect(clerk.card(prepared).locator(".conflict")).to_contain_text(MARKUP)
    assert_only_text(clerk)
    clerk.page.goto(f"/form/customer?bill={bill}")
    expect(clerk.page.locator("#form h2")).to_contain_text("<img src=x")
    assert_only_text(clerk)
    clerk.page.goto("/queue")
    clerk.page.locator(f'#rows tr[data-id="{cancelled}"]').get_by_role("button", name="Events").click()
    expect(clerk.page.locator(".timeline")).to_contain_text("<img src=x onerror=alert(1)>")
    assert_only_text(clerk)


def test_markup_in_a_choice_of_a_reference_is_text(door: Door, visit: Visit) -> None:
    door.run("u-zhao", **hostile())
    prepared = door.prepare("u-zhao", **quotation(some(door, "customer")["id"]))["preparationId"]
    clerk = visit("u-zhao", path=f"/?preparation={prepared}")
    clerk.button("Edit values").click()
    search = clerk.page.get_by_role("combobox", name="Customer")
    search.fill("onerror")
    expect(clerk.page.get_by_role("listbox").get_by_role("option").first).to_contain_text("<img src=x")
    assert_only_text(clerk)


@pytest.mark.parametrize(
    "path", ["/", "/queue", "/form/customer", "/form/%3Cimg%20src=x%3E", "/static/todos.js"]
)
def test_pages_allow_nothing_inline_and_nothing_from_elsewhere(path: str, door: Door) -> None:
    answer = httpx.get(door.url + path, timeout=10)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<img" not in answer.text
    assert "style=" not in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text


def test_the_words_of_the_page_break_out_of_nothing(door: Door) -> None:
    html = httpx.get(f"{door.url}/", headers={"Accept-Language": "zh"}, timeout=10).text
    assert html.count("</script>") == 2  # the words, and the module


def test_the_page_survives_the_death_of_the_api_and_misses_nothing(door: Door, visit: Visit) -> None:
    clerk = visit("u-lin")
    clerk.expected = ["net::ERR_", "the server responded with a status of 5"]
    expect(clerk.page.locator("#live")).to_have_text("Live")
    op_id = door.stage("u-lin", **new_customer())["id"]
    expect(clerk.card(op_id)).to_be_visible()
    clerk.page.evaluate("window.sameDocument = true")
    door.api.kill9()
    expect(clerk.page.locator("#live")).to_have_text("Reconnecting…")
    door.execute(op_id)  # ends while nobody listens
    door.api.start()
    expect(clerk.page.locator(f'#recent [id="op-{op_id}"] .badge')).to_contain_text("200", timeout=20_000)
    expect(clerk.page.locator("#live")).to_have_text("Live")
    assert clerk.page.evaluate("window.sameDocument") is True


def test_a_session_that_ends_asks_to_sign_in_again(door: Door, visit: Visit) -> None:
    clerk = visit("u-lin")
    op_id = door.stage("u-lin", **new_customer())["id"]
    expect(clerk.card(op_id)).to_be_visible()
    clerk.context.clear_cookies()
    clerk.card(op_id).get_by_role("button", name="Cancel").click()
    clerk.button("Cancel it").click()
    expect(clerk.page.locator("#token")).to_be_visible()
    assert door.as_("u-lin").get(f"/v1/operations/{op_id}")["code"] == 100


def test_a_burst_of_events_asks_the_server_seldom(door: Door, visit: Visit) -> None:
    asked: list[str] = []
    clerk = visit("u-lin")
    expect(clerk.page.locator("#live")).to_have_text("Live")
    clerk.page.on(
        "request", lambda request: asked.append(request.url) if "/v1/todos" in request.url else None
    )
    items = [new_customer() for _ in range(30)]
    prepared = door.prepare("u-lin", items=items)["preparationId"]
    path = f"/v1/preparations/{prepared}/confirm"
    ids = [o["id"] for o in door.as_("u-lin", PERSON).post(path, {}, expect=202)["operations"]]
    door.execute(*ids)
    expect(clerk.page.locator(f'[id="op-{ids[-1]}"] .badge')).to_contain_text("200", timeout=20_000)
    wait_until(lambda: len(asked) > 0, 5, "the page looked")
    assert len(asked) <= 15  # 90 events


def test_another_site_cannot_use_the_cookie(door: Door) -> None:
    """A form or script of another site carries the cookie at most; without our origin it changes nothing."""
    op_id = door.stage("u-lin", **new_customer())["id"]
    cookies = {"opstage_session": door.token("u-lin")}
    for origin in ("https://evil.example", "null", ""):
        headers = {"Origin": origin} if origin else {}
        path = f"{door.url}/v1/operations/{op_id}/cancel"
        answer = httpx.post(path, cookies=cookies, headers=headers, json={"reason": "x"}, timeout=10)
        assert answer.status_code == 403
    assert (
        httpx.get(f"{door.url}/v1/me", cookies={"opstage_session": door.token("ops", OPERATOR)}).status_code
        == 200
    )
