"""The page's words, from the Babel catalogues under ``locales/`` (English is the message id)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

_LOCALES = Path(__file__).parent / "locales"


@cache
def texts(locale: str) -> Mapping[str, str]:
    """Message id → text in ``locale`` ("zh" or "en"); the id itself where a catalogue has none."""
    with (_LOCALES / "zh" / "LC_MESSAGES" / "pages.po").open("rb") as file:
        catalogue = read_po(file, locale="zh")
    words = {str(m.id): str(m.string or m.id) for m in catalogue if m.id}
    return words if locale == "zh" else {word: word for word in words}
