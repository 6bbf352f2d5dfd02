"""JSON Schema as pydantic makes it, without what tells a reader nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NULL = {"type": "null"}
_MAPS = ("properties", "$defs")  # name → schema; the names are not ours to look into
_VALUES = ("default", "examples", "enum", "const")


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy without titles made from names, and with ``X | None = None`` as plain X: leaving it out says the same."""
    made = {key: _below(key, value) for key, value in schema.items() if key != "title"}
    if "default" in made and made["default"] is None:
        del made["default"]
        kinds = [kind for kind in made.get("anyOf", ()) if kind != _NULL]
        if len(kinds) == 1:
            del made["anyOf"]
            made = kinds[0] | made
    return made


def _below(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _MAPS:
        return {name: lean(one) for name, one in value.items()}
    if isinstance(value, Mapping):
        return lean(value)
    if isinstance(value, list):
        return [lean(one) if isinstance(one, Mapping) else one for one in value]
    return value


def nested(envelope: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """``envelope`` with the schema ``own`` as property ``name``, required where something in it is; its definitions go
    up, under names of their own."""
    inner = json.loads(json.dumps(own).replace('"#/$defs/', f'"#/$defs/{name}.'))
    theirs = {f"{name}.{key}": schema for key, schema in inner.pop("$defs", {}).items()}
    needed = {*envelope.get("required", []), *([name] if inner.get("required") else [])}
    definitions = {**envelope.get("$defs", {}), **theirs}
    return {
        **envelope,
        "properties": {**envelope["properties"], name: inner},
        "required": sorted(needed),
        **({"$defs": definitions} if definitions else {}),
    }
