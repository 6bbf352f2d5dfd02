"""What pydantic has against an input, as our bad fields: one reading for every door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import FieldProblem
from staging.domain.intake import sanitize_text

BAD_VALUE = "bad_value"
_CODES = {"missing": E.FIELD_REQUIRED, "extra_forbidden": E.FIELD_UNKNOWN}
# By pydantic's name of the complaint; what is not here is said in general, with that name.
_ZH = {
    "bool_parsing": "应为 true 或 false",
    "bool_type": "应为 true 或 false",
    "datetime_from_date_parsing": "应为带时区的时间，如 2026-11-30T08:00:00Z",
    "datetime_parsing": "应为带时区的时间，如 2026-11-30T08:00:00Z",
    "datetime_type": "应为带时区的时间，如 2026-11-30T08:00:00Z",
    "dict_type": "应为对象 {{…}}",
    "enum": "可选值：{expected}",
    "greater_than": "应大于 {gt}",
    "greater_than_equal": "不能小于 {ge}",
    "int_from_float": "应为整数",
    "int_parsing": "应为整数",
    "int_parsing_size": "数值过大",
    "int_type": "应为整数",
    "less_than": "应小于 {lt}",
    "less_than_equal": "不能大于 {le}",
    "list_type": "应为列表",
    "literal_error": "可选值：{expected}",
    "model_attributes_type": "应为对象 {{…}}",
    "model_type": "应为对象 {{…}}",
    "string_too_long": "过长：最多 {max_length} 个字符",
    "string_too_short": "过短：至少 {min_length} 个字符",
    "string_type": "应为文本",
    "timezone_aware": "时间须带时区，如 2026-11-30T08:00:00Z",
    "too_long": "最多 {max_length} 项",
    "too_short": "至少 {min_length} 项",
}


def bad_value(reason: Mapping[str, str]) -> PydanticCustomError:
    """For validators of ours: ``reason`` {"zh", "en"} reaches the reader as it is."""
    return PydanticCustomError(BAD_VALUE, "{en}", dict(reason))


def problems_of(
    complaints: Iterable[Mapping[str, Any]], below: str = "", whole: str = "body"
) -> list[FieldProblem]:
    """``ValidationError.errors()`` as bad fields; paths ``below`` a name if there is one, ``whole`` without any."""
    return [_problem(complaint, below, whole) for complaint in complaints]


def path_at(location: Sequence[str | int], below: str = "") -> str:
    """``("lines", 0, "price")`` as ``lines[0].price``."""
    steps = [f"[{s}]" if isinstance(s, int) else "." + sanitize_text(s, 100) for s in location]
    return (below + "".join(steps)).removeprefix(".")


def _problem(complaint: Mapping[str, Any], below: str, whole: str) -> FieldProblem:
    path, kind = path_at(complaint["loc"], below) or whole, str(complaint["type"])
    context: Mapping[str, Any] = complaint.get("ctx") or {}
    if kind in _CODES:
        return FieldProblem(path, _CODES[kind])
    if kind == BAD_VALUE:
        reason = {"zh": str(context["zh"]), "en": str(context["en"])}
    else:
        zh = _ZH.get(kind, "").format_map(context)
        en = str(complaint["msg"]).removeprefix("Value error, ")
        reason = {"zh": zh or f"值不合法（{kind}）", "en": sanitize_text(en, 300)}
    return FieldProblem(path, E.FIELD_INVALID, reason)
