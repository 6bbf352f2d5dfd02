"""JSON Schema of typed filters and rows, with labels and notes in the asker's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from staging.contracts.form import Label
from staging.domain.json_schema import lean

_LABEL, _NOTE = "x-label", "x-note"
_SHOWN = {_LABEL: "title", _NOTE: "description"}


def says(zh: str, en: str, note_zh: str = "", note_en: str = "", **field: Any) -> Any:
    """A pydantic field with its label, and a note if there is one, in both languages."""
    return Field(json_schema_extra=words(Label(zh=zh, en=en), Label(zh=note_zh, en=note_en)), **field)


def words(label: Label | None = None, note: Label | None = None) -> dict[str, Any]:
    """The same for ``json_schema_extra`` elsewhere; empty texts are left out."""
    texts = {_LABEL: label, _NOTE: note}
    return {key: {"zh": text.zh, "en": text.en} for key, text in texts.items() if text and text.zh}


def told(
    model: type[BaseModel], locale: str, mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    """``model`` as JSON Schema in ``locale``; a class's own words are for its readers, not for askers."""
    schema: dict[str, Any] = _told(lean(model.model_json_schema(by_alias=True, mode=mode)), locale)
    return schema


def _told(schema: Any, locale: str) -> Any:
    if isinstance(schema, list):
        return [_told(one, locale) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: _told(value, locale) for key, value in schema.items() if key not in _SHOWN}
    if "properties" in kept or kept.get("type") == "object":
        kept.pop("description", None)
    texts = {
        shown: schema[key]["zh" if locale == "zh" else "en"] for key, shown in _SHOWN.items() if key in schema
    }
    return kept | texts
