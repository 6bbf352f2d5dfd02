"""A demo ERP with its API for all page tests; a browser for each module, so that its event loop ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, Locator, expect

from staging.domain.identity import ActorKind
from tests.support.api import PERSON, Door, open_door
from tests.support.browser import Visitor, open_browser
from tests.support.private import EmbeddedRedis


class Visit(Protocol):
    """``visit("u-lin", path="/queue")``: signed in there; checked and closed after the test."""

    def __call__(
        self, user: str, kind: ActorKind = PERSON, *, path: str = "/", locale: str = "en-US", **options: Any
    ) -> Visitor: ...


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory, session_redis: EmbeddedRedis) -> Iterator[Door]:
    with open_door("sqlite", session_redis.url, tmp_path_factory.mktemp("pages")) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as started:
        yield started


@pytest.fixture
def visit(door: Door, browser: Browser) -> Iterator[Visit]:
    visitors: list[Visitor] = []

    def arrive(
        user: str, kind: ActorKind = PERSON, *, path: str = "/", locale: str = "en-US", **options: Any
    ) -> Visitor:
        visitor = Visitor(browser, door.url, locale, **options)
        visitors.append(visitor)
        visitor.enter(door.token(user, kind), path)
        return visitor

    yield arrive
    for visitor in visitors:
        visitor.check()
        visitor.close()


def opened(door: Door, visit: Visit, user: str, **request: Any) -> tuple[Visitor, Locator]:
    """The clerk's page with the card of a fresh preparation."""
    prepared = door.prepare(user, **request)
    clerk = visit(user, path=f"/?preparation={prepared['preparationId']}")
    card = clerk.card(prepared["preparationId"])
    expect(card).to_be_visible()
    return clerk, card


def confirmed(clerk: Visitor, door: Door, user: str) -> dict[str, Any]:
    """The newest operation, once the page shows it."""
    expect(clerk.page.locator("#notice")).to_contain_text("Confirmed")
    operation: dict[str, Any] = door.as_(user).post("/v1/operations/query", {"page": {"size": 1}})["items"][0]
    expect(clerk.card(operation["id"])).to_be_visible()
    return operation


def click(place: Locator, name: str) -> None:
    place.get_by_role("button", name=name, exact=True).click()
