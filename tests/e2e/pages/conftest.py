"""A demo ERP with its API for all page tests; a browser for each module, so that its event loop ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser

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
