"""The page's words, from the Babel catalogues under ``locales/``. English is the message id and needs no catalogue.

``scripts/texts`` keeps the catalogues in step with templates and scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

LOCALES = Path(__file__).parent / "locales"


@cache
def texts(locale: str) -> Mapping[str, str]:
    """Message id → text in ``locale``; empty for English, whose texts are the ids."""
    path = LOCALES / locale / "LC_MESSAGES" / "pages.po"
    if not path.exists():
        return {}
    with path.open("rb") as file:
        catalogue = read_po(file, locale=locale)
    return {str(m.id): str(m.string) for m in catalogue if m.id and m.string}
