"""Schemas for programs: without noise, and one within another without clashes."""

from __future__ import annotations

from pydantic import BaseModel, Field

from staging.domain.json_schema import lean, nested


class Line(BaseModel):
    title: str = Field(max_length=60)
    memo: str | None = None
    amount: int | str | None = None


class Bill(BaseModel):
    lines: list[Line] = Field(min_length=1)
    note: str = ""


def test_titles_and_nulls_go_but_names_values_and_limits_stay() -> None:
    made = lean(Bill.model_json_schema())
    assert made == {
        "$defs": {
            "Line": {
                "properties": {
                    "title": {"maxLength": 60, "type": "string"},
                    "memo": {"type": "string"},
                    "amount": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
                },
                "required": ["title"],
                "type": "object",
            }
        },
        "properties": {
            "lines": {"items": {"$ref": "#/$defs/Line"}, "minItems": 1, "type": "array"},
            "note": {"default": "", "type": "string"},
        },
        "required": ["lines"],
        "type": "object",
    }


def test_definitions_of_the_inner_do_not_clash_with_the_outers() -> None:
    outer = {
        "type": "object",
        "properties": {"page": {"$ref": "#/$defs/Line"}},
        "$defs": {"Line": {"type": "null"}},
    }
    made = nested(outer, "payload", lean(Bill.model_json_schema()))
    assert made["properties"]["payload"]["properties"]["lines"]["items"] == {"$ref": "#/$defs/payload.Line"}
    assert made["$defs"]["Line"] == {"type": "null"}
    assert made["$defs"]["payload.Line"]["required"] == ["title"]
    assert "$defs" not in made["properties"]["payload"]
    assert made["required"] == ["payload"]


def test_what_needs_nothing_is_not_required() -> None:
    made = nested({"type": "object", "properties": {}}, "filter", {"type": "object", "properties": {}})
    assert made["required"] == []
    assert "$defs" not in made
