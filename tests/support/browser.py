"""A real headless Chromium on the machine's own binary, and a page that fails its test for what no page may do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, sync_playwright

from staging.api.context import SESSION_COOKIE
from tests.support.services import missing

SHOTS = Path(__file__).resolve().parents[2] / "artifacts" / "screenshots"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = [
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_TIMEOUT_MS = 10_000


def chromium_path() -> str:
    """Path of the system's Chromium; skips (or fails, where services are required) without one."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        missing("there is no Chromium", "apt-get install chromium fonts-wqy-zenhei")
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    """One browser process; ``Visitor`` gives each test a profile of its own."""
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield browser
        browser.close()


class Visitor:
    """Somebody at a browser with an empty profile. ``check`` fails for what went wrong unseen: errors in the console
    (what the Content-Security-Policy stopped is one), dialogs nobody asked for, requests to another host."""

    def __init__(self, browser: Browser, url: str, locale: str, **options: Any) -> None:
        """``locale``: as the browser announces it (``zh-CN``); ``options`` of Playwright's ``new_context``."""
        options = {"viewport": DESKTOP, "timezone_id": "Asia/Shanghai", **options}
        self.context = browser.new_context(base_url=url, locale=locale, **options)
        self.context.set_default_timeout(_TIMEOUT_MS)
        self.page: Page = self.context.new_page()
        self.expected: list[str] = []
        self._url = url
        self._problems: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._problems.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium reports every 4xx answer; what an API refuses is the test's to look at.
        if (
            message.type in ("error", "warning")
            and "the server responded with a status of 4" not in message.text
        ):
            self._problems.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self._problems.append(f"request to {request.url}")

    def enter(self, token: str, path: str = "/") -> None:
        """Open ``path`` signed in, as somebody who was here before."""
        self.context.add_cookies(
            [
                {
                    "name": SESSION_COOKIE,
                    "value": token,
                    "url": self._url,
                    "httpOnly": True,
                    "sameSite": "Strict",
                }
            ]
        )
        self.page.goto(path)
        self.page.locator("main:not([aria-busy]) #content").wait_for(state="visible")

    def card(self, identifier: str) -> Locator:
        """The card of an operation or preparation."""
        return self.page.locator(f'[id="op-{identifier}"], [id="prep-{identifier}"]')

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def shot(self, name: str) -> None:
        """The whole page as ``artifacts/screenshots/{name}.png``."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    def check(self) -> None:
        unexpected = [p for p in self._problems if not any(e in p for e in self.expected)]
        assert not unexpected, unexpected

    def close(self) -> None:
        self.context.close()
