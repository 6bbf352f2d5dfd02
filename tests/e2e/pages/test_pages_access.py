"""For everybody: by keyboard alone, on a phone, in light and dark, in one's own language."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import update as sql_update

from staging.storage.tables import op_queue
from tests.e2e.pages.conftest import Visit
from tests.support.api import AGENT, OPERATOR, Door
from tests.support.browser import DESKTOP, PHONE, Visitor
from tests.support.demo_papers import quotation, some, update
from tests.support.demo_requests import new_customer, new_outsource_order, new_supplier

CONTRAST = (Path(__file__).parents[2] / "support" / "contrast.js").read_text(encoding="utf-8")


# What a screen reader would stumble over: fields and buttons without a name, ids that come twice.
NAMELESS = """() => {
  const named = (n) => n.labels?.length || n.getAttribute("aria-label") || n.textContent.trim();
  const nameless = [...document.querySelectorAll("input, select, textarea, button, a")].filter((n) => !named(n));
  const ids = [...document.querySelectorAll("[id]")].map((n) => n.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  return [...nameless.map((n) => n.outerHTML.slice(0, 120)), ...twice];
}"""


def assert_contrast(visitor: Visitor, least_texts: int) -> None:
    found = visitor.page.evaluate(CONTRAST)
    assert found["wrong"] == []
    assert found["seen"] >= least_texts  # it did look
    assert visitor.page.evaluate(NAMELESS) == []


def assert_fits(visitor: Visitor) -> None:
    size = visitor.page.viewport_size
    assert size is not None
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.fixture(scope="module")
def everything(door: Door) -> dict[str, str]:
    """u-zhao has one of each: an edit of a stored record, 102, 103, 104, refused, cancelled, executed."""
    supplier, product = some(door, "supplier")["id"], some(door, "product")["id"]
    customer = door.run("u-zhao", **new_customer(phone="1"))["resultBillId"]
    drifted = door.stage("u-zhao", **update("customer", customer, phone="3"))["id"]
    preparation = door.prepare("u-zhao", **quotation(some(door, "customer")["id"]))["preparationId"]
    stale = door.prepare("u-zhao", **update("customer", customer, phone="4", memo="备注"))["preparationId"]
    door.run("u-zhao", **update("customer", customer, phone="2"))
    door.execute(drifted)
    unknown = door.stage("u-zhao", **new_customer())["id"]
    with door.services.databases.store.engine.begin() as connection:
        connection.execute(sql_update(op_queue).where(op_queue.c.sId == unknown).values(iStatusCode=102))
    manual = door.stage("u-zhao", **new_outsource_order(supplier, product))
    door.stage("u-chen", **new_supplier())
    cancelled = door.stage("u-zhao", **new_customer())["id"]
    door.as_("u-zhao").post(f"/v1/operations/{cancelled}/cancel", {"reason": "…"})
    return {"preparation": preparation, "stale": stale, "form": manual["link"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_text_and_edge_has_contrast_and_nothing_is_wider_than_the_screen(
    scheme: str, size: dict[str, int], everything: dict[str, str], visit: Visit
) -> None:
    here = visit(
        "u-zhao", path=f"/?preparation={everything['preparation']}", viewport=size, color_scheme=scheme
    )
    for folded in here.page.locator("details > summary").all():
        folded.click()
    expect(here.page.locator(".timeline").first).to_be_visible()
    assert_contrast(here, 120)
    assert_fits(here)
    here.button("Edit values").click()
    here.page.get_by_label("Valid for days").fill("x")
    search = here.page.get_by_role("combobox", name="Customer")
    here.button("Confirm with my changes").click()
    expect(here.page.locator("[aria-invalid]")).to_have_count(1)
    search.click()
    expect(here.page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    search.press("ArrowDown")
    assert_contrast(here, 120)
    assert_fits(here)
    here.page.goto(f"/?preparation={everything['stale']}")
    here.button("Confirm").click()
    expect(here.page.locator("#preparations .conflict")).to_be_visible()
    assert_contrast(here, 60)
    assert_fits(here)
    here.page.goto(everything["form"])
    expect(here.page.locator("#form form")).to_be_visible()
    assert_contrast(here, 10)
    assert_fits(here)
    here.page.goto("/queue")
    here.page.get_by_role("button", name="Events").first.click()
    expect(here.page.locator(".timeline")).to_be_visible()
    assert_contrast(here, 5)
    here.page.keyboard.press("Escape")
    assert_contrast(here, 60)
    assert_fits(here)


def test_the_whole_job_by_keyboard_alone(door: Door, browser: Browser) -> None:
    prepared = door.prepare("u-lin", **new_customer(city="上海"))["preparationId"]
    visitor = Visitor(browser, door.url, "en-US")
    page, keys = visitor.page, visitor.page.keyboard
    page.goto(f"/?preparation={prepared}")
    expect(page.locator("#token")).to_be_focused()
    keys.type(door.token("u-lin"))
    keys.press("Enter")
    card = visitor.card(prepared)
    expect(card).to_be_focused()
    keys.press("Tab")
    expect(card.get_by_role("button", name="Confirm", exact=True)).to_be_focused()
    outline = "document.activeElement && getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    keys.press("Tab")
    keys.press("Enter")  # Edit values
    expect(card.get_by_label("Name", exact=False).first).to_be_focused()
    keys.press("ControlOrMeta+A")
    keys.type("键盘客户")
    for _ in range(12):
        if page.evaluate("document.activeElement.textContent") == "Confirm with my changes":
            break
        keys.press("Tab")
    keys.press("Enter")
    running = page.locator("#running article")
    expect(running.first).to_be_focused()
    expect(running.first).to_contain_text("键盘客户")
    for _ in range(6):
        keys.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Cancel":
            break
    keys.press("Enter")
    expect(page.get_by_label("Why?", exact=False)).to_be_focused()
    keys.type("试一试")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator("#recent article").first).to_contain_text("试一试")
    visitor.check()
    visitor.close()


def test_the_skip_link_leads_past_the_head(door: Door, visit: Visit) -> None:
    clerk = visit("u-lin")
    clerk.page.keyboard.press("Tab")
    expect(clerk.page.get_by_role("link", name="Skip to content")).to_be_focused()
    clerk.page.keyboard.press("Enter")
    expect(clerk.page.locator("main")).to_be_focused()


@pytest.mark.parametrize(
    ("announced", "title", "lang"),
    [("zh-CN", "我的AI待办", "zh-CN"), ("en-US", "My AI todos", "en"), ("fr-FR", "我的AI待办", "zh-CN")],
)
def test_the_browsers_language_is_taken_where_it_is_spoken(
    announced: str, title: str, lang: str, visit: Visit
) -> None:
    clerk = visit("u-lin", locale=announced)
    expect(clerk.page.locator("h1")).to_have_text(title)
    assert clerk.page.locator("html").get_attribute("lang") == lang


def test_the_switch_changes_everything_and_is_remembered(door: Door, visit: Visit) -> None:
    """Also what was prepared in the other language: labels and choices come from the form."""
    prepared = door.prepare("u-lin", **new_customer(type="agent"))["preparationId"]
    clerk = visit("u-lin", path=f"/?preparation={prepared}")
    expect(clerk.card(prepared)).to_contain_text("Payment days")
    clerk.page.get_by_role("link", name="中文").click()
    expect(clerk.card(prepared)).to_contain_text("账期（天）")  # the card is still there
    expect(clerk.card(prepared)).to_contain_text("代理")
    expect(clerk.card(prepared).locator("h3")).to_contain_text("新增客户")
    assert "Type" not in clerk.page.locator("main").inner_text()
    clerk.page.goto("/queue")
    expect(clerk.page.locator("h1")).to_have_text("全部操作")


def test_the_switch_leads_to_pages_of_ours_only(door: Door) -> None:
    for elsewhere in (
        "https://evil.example/",
        "//evil.example",
        "/v1/me",
        "/queue/../v1",
        "javascript:alert(1)",
    ):
        answer = door.as_("u-lin").http.get("/locale/en", params={"to": elsewhere})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    answer = door.as_("u-lin").http.get("/locale/en", params={"to": "/?preparation=a-b_c"})
    assert answer.headers["location"] == "/?preparation=a-b_c"


def test_signing_in_keeps_the_token_where_no_script_finds_it(door: Door, browser: Browser) -> None:
    visitor = Visitor(browser, door.url, "en-US")
    page, token = visitor.page, door.token("ops", OPERATOR)
    page.goto("/queue")
    page.locator("#token").fill(token)
    visitor.button("Sign in").click()
    expect(page.locator("#content")).to_be_visible()
    (cookie,) = visitor.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert token not in page.content()
    assert token not in page.url
    assert page.evaluate("JSON.stringify([localStorage, sessionStorage])") == "[{},{}]"
    visitor.button("Sign out").click()
    expect(page.locator("#token")).to_be_visible()
    assert visitor.context.cookies() == []
    visitor.check()
    visitor.close()


def test_a_token_that_is_none_or_an_agents_does_not_get_in(door: Door, browser: Browser) -> None:
    visitor = Visitor(browser, door.url, "en-US")
    page = visitor.page
    page.goto("/")
    for token, said in (
        ("nonsense", "No valid credential"),
        (door.token("u-lin", AGENT), "neither a person's"),
    ):
        page.locator("#token").fill(token)
        visitor.button("Sign in").click()
        expect(page.locator("#notice")).to_contain_text(said)
        expect(page.locator("#content")).to_be_hidden()
        assert visitor.context.cookies() == []
    visitor.check()
    visitor.close()
