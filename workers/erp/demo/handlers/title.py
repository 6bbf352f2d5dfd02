"""What may be the title of a digital-human project."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any

from pydantic import Field

from workers.erp.sql.coerce import BadValue, read_by, string_value

MAX_CHARACTERS = 60
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}


def title_value(raw: Any) -> str:
    """The title as it is stored: in NFC, without white space at its ends, on one line, 1 to 60 characters.

    Characters are Unicode code points *after* that: ``e`` + combining accent is one, an emoji of several code points is
    several, which is also how the databases count. At least one character must be visible. Raises ``BadValue``.
    """
    title = string_value(raw, None).strip()
    if all(unicodedata.category(character) in _INVISIBLE for character in title):
        raise BadValue("标题不能为空", "the title must not be empty")
    if len(title) > MAX_CHARACTERS:
        raise BadValue(
            f"标题最多{MAX_CHARACTERS}个字，现为{len(title)}个",
            f"a title has at most {MAX_CHARACTERS} characters, this one has {len(title)}",
        )
    return title


Title = Annotated[str, read_by(title_value), Field(min_length=1, max_length=MAX_CHARACTERS)]
"""``title_value`` as a pydantic type."""
