"""Field types of command inputs: the adapter's own reading rules, as pydantic types."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from workers.erp.sql.coerce import read_by, string_value

ShortText = Annotated[str, read_by(partial(string_value, length=200)), Field(max_length=200)]
"""One line of at most 200 characters, in NFC."""

Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
"""``YYYY-MM-DD``; the form's field checks it."""
