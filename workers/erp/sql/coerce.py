"""From what a caller sent to the value a field holds, by type and with no guessing: ``"1,000"`` is an error, never 1.

Input comes from ``domain.intake`` (None, bool, int, Decimal, str, list, dict). Output is JSON-ready as in
``sql.values``: decimals as exact strings with the field's decimals, ISO dates, UTC times. What comes out goes in again
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from staging.contracts.form import FieldType, FormField
from staging.domain.canonical import decimal_text, nfc, utc_text
from staging.domain.complaints import bad_value
from workers.erp.sql.values import unit

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,59})(?:\.[0-9]{1,60})?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})\Z"
)
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
_CONTROL_IN_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_INT64 = 2**63 - 1
_WIDE = Context(prec=200)


class BadValue(ValueError):
    """Why a value does not fit, in both languages."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(en)
        self.reason = {"zh": zh, "en": en}


def coerce(field: FormField, raw: Any) -> Any:
    """Return the JSON-ready value of ``raw`` for ``field`` (None stays None), or raise ``BadValue``.

    A reference is only checked to be text here; ``sql.references`` resolves it.
    """
    if raw is None:
        return None
    match field.type:
        case FieldType.DECIMAL:
            number = _limited(field, decimal_value(raw, field.decimals or 0, field.precision))
            return f"{number:f}"
        case FieldType.INTEGER:
            return int(_limited(field, Decimal(integer_value(raw))))
        case FieldType.BOOLEAN:
            return _boolean(raw)
        case FieldType.DATE:
            return date_value(raw)
        case FieldType.DATETIME:
            return _moment(raw)
        case FieldType.CHOICE:
            return _choice(field, raw)
        case FieldType.REFERENCE:
            return string_value(raw, 200)
        case FieldType.TEXT:
            return string_value(raw, field.length, lines=True)
        case _:
            return string_value(raw, field.length)


def decimal_value(raw: Any, decimals: int, precision: int) -> Decimal:
    """An exact amount with exactly ``decimals`` decimals from a JSON number or a plain decimal string."""
    if isinstance(raw, str):
        if not _NUMBER.match(raw):
            raise BadValue(
                f"“{_short(raw)}”不是普通数字，如 1234.50",
                f'"{_short(raw)}" is not a plain number such as 1234.50',
            )
        raw = Decimal(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | Decimal) or not Decimal(raw).is_finite():
        raise BadValue("应为数字", "a number is expected")
    number = Decimal(raw)
    if number and number.adjusted() >= precision - decimals:
        raise BadValue(
            f"数值过大：整数部分最多{precision - decimals}位",
            f"too large: at most {precision - decimals} digits before the point",
        )
    fitted = number.quantize(unit(decimals), context=_WIDE)
    if fitted != number:
        raise BadValue(f"最多{decimals}位小数", f"at most {decimals} decimals")
    return fitted or fitted.copy_abs()


def integer_value(raw: Any) -> int:
    """A whole number from a JSON number or a string of digits."""
    number = decimal_value(raw, 0, 38)
    if abs(number) > _INT64:
        raise BadValue("数值过大", "too large")
    return int(number)


def string_value(raw: Any, length: int | None, *, lines: bool = False) -> str:
    """Text in NFC, otherwise as it is; ``lines``: tabs and line breaks are allowed. ``length`` in characters."""
    if not isinstance(raw, str):
        raise BadValue("应为文本", "text is expected")
    try:
        text = nfc(raw)
    except ValueError:
        raise BadValue("含有无法保存的字符", "it has characters that cannot be stored") from None
    if (_CONTROL_IN_TEXT if lines else _CONTROL).search(text):
        raise BadValue("含有控制字符", "it has control characters")
    if length is not None and len(text) > length:
        raise BadValue(
            f"过长：{len(text)}个字符，最多{length}个", f"too long: {len(text)} characters, at most {length}"
        )
    return text


def read_by(read: Callable[[Any], Any]) -> BeforeValidator:
    """A pydantic validator that reads with ``read``; its ``BadValue`` is reported in both languages."""

    def checked(raw: Any) -> Any:
        try:
            return read(raw)
        except BadValue as bad:
            raise bad_value(bad.reason) from None

    return BeforeValidator(checked)


def exact_decimal(decimals: int, precision: int = 18) -> Any:
    """An annotated ``Decimal`` for the ``Input`` of a command handler, read by the rules above; JSON: exact string."""

    return Annotated[
        Decimal,
        read_by(partial(decimal_value, decimals=decimals, precision=precision)),
        PlainSerializer(decimal_text, return_type=str),
        WithJsonSchema(decimal_schema(decimals, precision)),
    ]


def decimal_schema(decimals: int, precision: int = 18) -> dict[str, Any]:
    """JSON Schema of an amount: exact text. Numbers are read too, but a program that makes them may round."""
    whole, fraction = precision - decimals, rf"(\.\d{{1,{decimals}}})?" if decimals else ""
    return {
        "type": "string",
        "pattern": rf"^-?\d{{1,{whole}}}{fraction}$",
        "examples": ["12.5" if decimals else "12"],
    }


def _limited(field: FormField, number: Decimal) -> Decimal:
    low, high = field.minimum, field.maximum
    if low is not None and number < low:
        raise BadValue(f"不能小于{low}", f"must not be below {low}")
    if high is not None and number > high:
        raise BadValue(f"不能大于{high}", f"must not be above {high}")
    return number


def _boolean(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise BadValue("应为 true 或 false", "true or false is expected")
    return raw


def date_value(raw: Any) -> str:
    """A day as ``YYYY-MM-DD``."""
    if isinstance(raw, str) and _DATE.match(raw):
        try:
            return date.fromisoformat(raw).isoformat()
        except ValueError:
            raise BadValue(f"没有{raw}这一天", f"there is no day {raw}") from None
    raise BadValue("日期格式应为 2026-11-30", "a date such as 2026-11-30 is expected")


def _moment(raw: Any) -> str:
    if isinstance(raw, str) and _MOMENT.match(raw):
        try:
            return utc_text(datetime.fromisoformat(raw).astimezone(UTC))
        except (ValueError, OverflowError):
            raise BadValue(f"没有{raw}这一时刻", f"there is no moment {raw}") from None
    raise BadValue(
        "时间须带时区，如 2026-11-30T08:00:00Z",
        "a time with its zone is expected, such as 2026-11-30T08:00:00Z",
    )


def _choice(field: FormField, raw: Any) -> str | int:
    if not isinstance(raw, bool):
        if isinstance(raw, Decimal) and raw.is_finite() and raw == raw.to_integral_value():
            raw = int(raw)
        for choice in field.choices:
            if type(raw) is type(choice.value) and raw == choice.value:
                return choice.value
        named = {c.value for c in field.choices if raw in (c.label.zh, c.label.en)}
        if len(named) == 1:
            return named.pop()
    zh = "、".join(f"{c.value}（{c.label.zh}）" for c in field.choices)
    en = ", ".join(f"{c.value} ({c.label.en})" for c in field.choices)
    raise BadValue(f"可选值：{zh}", f"one of: {en}")


def _short(raw: str) -> str:
    return raw if len(raw) <= 30 else raw[:29] + "…"
