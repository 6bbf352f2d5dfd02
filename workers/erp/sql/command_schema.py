"""A registered command as a program sees it: its input as JSON Schema, with what its form knows of the same fields.

A handler's ``Input`` uses its form's names. What the model leaves open, the form fills in: labels, choices, lengths,
dates and how a reference may be named. What the model says itself stays as it says.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from staging.contracts.form import Child, FieldType, Form, FormField
from staging.domain.json_schema import lean
from workers.erp.handlers import Registered
from workers.erp.sql.coerce import decimal_schema

_REFS = "#/$defs/"
_WORDS = {
    "zh": ("填 id、编号或完整一致的名称", "可选值：{choices}", "最小 {low}", "最大 {high}"),
    "en": ("by id, document number or exact name", "choices: {choices}", "at least {low}", "at most {high}"),
}


def described(command: Registered, form: Form, locale: str) -> dict[str, Any]:
    """``{description, inputSchema}`` of ``command``; texts of the form in ``locale``, the handler's own as written."""
    model = command.handler.Input
    schema = lean(model.model_json_schema(by_alias=True))
    definitions = schema.get("$defs", {})
    _fill(schema, form, definitions, locale)
    words = [inspect.getdoc(type(command.handler)) or "", schema.pop("description", "")]
    return {"description": "\n".join(w for w in words if w), "inputSchema": schema}


def _fill(schema: dict[str, Any], level: Form | Child, definitions: Mapping[str, Any], locale: str) -> None:
    """Complete the properties of ``schema`` by the fields and lines of ``level``, in place."""
    fields = {field.name: field for field in level.fields}
    children = {child.name: child for child in level.children}
    for name, said in schema.get("properties", {}).items():
        if name in fields:
            schema["properties"][name] = _of_field(fields[name], locale) | said
        elif name in children:
            said.setdefault("title", children[name].label.text(locale))
            lines = definitions.get(str(said.get("items", {}).get("$ref", "")).removeprefix(_REFS))
            if lines:
                _fill(lines, children[name], definitions, locale)


def _of_field(field: FormField, locale: str) -> dict[str, Any]:
    by, choices, low, high = _WORDS["zh" if locale == "zh" else "en"]
    says: dict[str, Any] = {"title": field.label.text(locale), **value_schema(field)}
    notes = []
    if field.type is FieldType.DECIMAL:
        notes += [low.format(low=field.minimum)] if field.minimum is not None else []
        notes += [high.format(high=field.maximum)] if field.maximum is not None else []
    if field.choices:
        named = ", ".join(f"{c.value} {c.label.text(locale)}" for c in field.choices)
        notes.append(choices.format(choices=named))
    if field.reference:
        notes.append(by)
    return says | ({"description": "; ".join(notes)} if notes else {})


def value_schema(field: FormField) -> dict[str, Any]:
    """JSON Schema of one value of ``field``, without words."""
    match field.type:
        case FieldType.DECIMAL:
            return decimal_schema(field.decimals or 0, field.precision)
        case FieldType.INTEGER:
            low, high = (None if n is None else int(n) for n in (field.minimum, field.maximum))
            limits = {"minimum": low, "maximum": high}
            return {"type": "integer", **{name: n for name, n in limits.items() if n is not None}}
        case FieldType.BOOLEAN:
            return {"type": "boolean"}
        case FieldType.CHOICE:
            return {"enum": [choice.value for choice in field.choices]}
        case FieldType.DATE:
            return {"type": "string", "format": "date"}
        case FieldType.DATETIME:
            return {"type": "string", "format": "date-time"}
        case _:
            return {"type": "string", **({"maxLength": field.length} if field.length else {})}
