"""Every text of the page is in the catalogue, translated, and none is left that no page uses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from staging.api.pages.texts import LOCALES, texts
from staging.contracts.status import Status
from staging.domain.identity import ActorKind
from staging.domain.lifecycle import Verb

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "staging" / "api" / "pages"


def test_the_catalogues_are_current_and_complete() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts/texts"), "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_text_takes_the_same_values_in_each_language() -> None:
    assert texts("zh")
    for english, chinese in texts("zh").items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), english
        words = re.sub(r"\{\w+\}|\bERP\b", "", chinese)
        assert re.search("[\u4e00-\u9fff]", words) or not words.strip(), english


def test_english_needs_no_catalogue() -> None:
    assert [path.name for path in LOCALES.iterdir() if path.is_dir()] == ["zh"]
    assert texts("en") == {}


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("static/timeline.js", [v.value for v in Verb]),
        ("static/timeline.js", [k.value for k in ActorKind]),
        ("templates/queue.html", [f'"{s.value}"' for s in Status]),
    ],
    ids=["verbs", "kinds", "statuses"],
)
def test_the_page_has_a_word_for_each(file: str, names: list[str]) -> None:
    source = (PAGES / file).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"(?<!\w){name}: (word|_|\")", source)] == []


def test_no_style_or_script_is_inline() -> None:
    """The Content-Security-Policy would stop it; said here, where the line is named."""
    for path in (*PAGES.glob("templates/*.html"), *PAGES.glob("static/*.js")):
        source = path.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|insertAdjacentHTML|outerHTML|\.style\b|\bstyle[:=]|\seval\(|\son\w+=\"", source
        ), path
