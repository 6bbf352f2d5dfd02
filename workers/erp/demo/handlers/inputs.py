"""Field types of command inputs: the adapter's own reading rules, as pydantic types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from workers.erp.sql.coerce import BadValue, string_value


def read_by(read: Callable[[Any], Any]) -> BeforeValidator:
    """Validate with ``read``; its ``BadValue`` is reported in both languages."""

    def checked(raw: Any) -> Any:
        try:
            return read(raw)
        except BadValue as bad:
            raise PydanticCustomError("bad_value", "{en}", {**bad.reason}) from None

    return BeforeValidator(checked)


ShortText = Annotated[str, read_by(partial(string_value, length=200)), Field(max_length=200)]
"""One line of at most 200 characters, in NFC."""

Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
"""``YYYY-MM-DD``; the form's field checks it."""
