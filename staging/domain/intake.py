"""What may come in, and how it goes out: the same decision on every database, and no binary float on the way.

In (``parse_json`` for text of any origin, ``check_value`` for a structure of a Python caller): the result consists of
None, bool, int, Decimal, str (NFC), list and dict only. Whatever some database, driver or reader would take
differently from the others is refused: NUL and other control characters, lone surrogates, duplicate keys, NaN,
numbers beyond ``MAX_DIGITS``. A refusal is ``payload_invalid`` or ``payload_too_large`` and says where and why.

Out: ``dump_json`` for storage, ``load_json`` to read that back, ``wire_value`` for answers, ``sanitize_text`` for the
texts of errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from staging.contracts.error import ErrorCode
from staging.domain.canonical import decimal_text, nfc, utc_text
from staging.domain.errors import ValidationFailed

MAX_DIGITS = 38  # significant digits, and digits before the point
MAX_DECIMALS = 60
JS_SAFE_INTEGER = 2**53 - 1
_INTEGER_LIMIT = 10**MAX_DIGITS
_NUMBER_LENGTH = MAX_DIGITS + MAX_DECIMALS + 30  # characters of a number worth converting at all

_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'\\.|["\[\]{}]', re.DOTALL)

# Where a value stands: its parent's place and its own key or index. Rendered only for an error, since rendering it on
# the way would cost the square of the size for a long key with many children.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


def parse_json(source: str | bytes | None, *, max_bytes: int, max_depth: int) -> Any:
    """Parse untrusted JSON text (UTF-8) strictly. ``max_depth`` counts containers: ``[1]`` has depth 1.

    Raises ``ValidationFailed`` with ``payload_too_large`` or ``payload_invalid``, whatever the text holds.
    """
    text = _text_of(source, max_bytes)
    _check_depth(text, max_depth)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _invalid(
            f"{_line(text, error.pos)}: {error.msg}", f"{_line(text, error.pos, zh=True)}语法错误"
        ) from None
    except RecursionError:
        raise _too_deep(max_depth) from None
    return check_value(value, max_bytes=max_bytes, max_depth=max_depth)


def check_value(value: Any, *, max_bytes: int, max_depth: int) -> Any:
    """Return a clean copy of a Python structure by the rules of ``parse_json``; dates become their ISO text.

    Raises ``ValidationFailed``. A float is refused: by the time it is here, the amount that was meant is gone.
    """
    try:
        return _Check(max_bytes, max_depth).clean(value, None, 1)
    except RecursionError:
        raise _too_deep(max_depth) from None


def require_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, as a payload has to be; ``ValidationFailed`` otherwise."""
    if isinstance(value, dict):
        return value
    raise _invalid("an object {…} is expected", "应为对象{…}")


def dump_json(value: Any, *, by_key: bool = False) -> str:
    """JSON text for storage: decimals as exact strings (``"1.50"``), dates as ISO text, integers in all their digits.

    ``load_json`` gives JSON-ready values back exactly, so a hash taken before storing still holds. ``by_key``: keys
    sorted, which of most values makes the canonical text (``hashes_to``). ``TypeError`` for a float or a type JSON has
    not; ``ValueError`` for a lone surrogate.
    """
    text = json.dumps(
        _plain(value, int), ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=by_key
    )
    if _SURROGATE.search(text):
        raise ValueError("a lone surrogate is not text")
    return text


_STORED = json.JSONDecoder(parse_float=Decimal)  # made once: making one takes as long as reading a short text


def load_json(text: str | bytes) -> Any:
    """Read text that ``dump_json`` wrote, to the character. Text of any other origin is ``parse_json``'s.

    What an ERP record holds (pins, copied fields) may be text that intake would refuse, and is not to be altered.
    Raises ``ValidationFailed`` for what cannot be read at all.
    """
    try:
        return _STORED.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError) as error:
        raise _invalid("it is not what was stored", "不是当初存入的内容") from error


def wire_value(value: Any) -> Any:
    """``value`` ready for a JSON answer: as ``dump_json``, and integers a JavaScript reader would round, as strings."""
    return _plain(value, lambda number: int(number) if abs(number) <= JS_SAFE_INTEGER else str(int(number)))


def is_sane(text: str) -> bool:
    """True where ``sanitize_text`` has nothing to replace."""
    return _FORBIDDEN.search(text) is None


def sanitize_text(text: str, limit: int) -> str:
    """``text`` for any column or log: no NUL, control character or surrogate, at most ``limit`` (1 …) characters."""
    head = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text[: limit + 1])
    return head if len(head) <= limit else head[: limit - 1] + "…"


# ---------------------------------------------------------------------------------------------------- reading text


class _Pairs(list[tuple[str, Any]]):
    """An object as read, so that a key that comes twice is still there to be seen."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Stands where a value was that cannot be accepted, until the place is known."""

    en: str
    zh: str


_TOO_MANY_DIGITS = _Refusal(
    f"a number may have {MAX_DIGITS} digits and {MAX_DECIMALS} decimals",
    f"数字最多{MAX_DIGITS}位、小数最多{MAX_DECIMALS}位",
)


def _number(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    # Converting digits takes more than linear time, so length is looked at first.
    return lambda digits: convert(digits) if len(digits) <= _NUMBER_LENGTH else _TOO_MANY_DIGITS


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_int=_number(int),
    parse_float=_number(Decimal),
    parse_constant=lambda name: _Refusal(f"{name} is not a JSON number", f"{name}不是JSON数字"),
)


def _text_of(source: str | bytes | None, max_bytes: int) -> str:
    if not isinstance(source, str | bytes):
        raise _invalid("text is expected", "应为文本")
    if len(source) > max_bytes:
        raise _too_large(max_bytes)
    if isinstance(source, bytes):
        try:
            source = source.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _invalid(
                f"byte {error.start + 1} is not UTF-8", f"第{error.start + 1}字节不是UTF-8编码"
            ) from None
    elif len(source.encode("utf-8", "surrogatepass")) > max_bytes:
        raise _too_large(max_bytes)
    if source.startswith("\ufeff"):
        raise _invalid(
            "it starts with a byte order mark: send UTF-8 without BOM", "开头有BOM：请使用不带BOM的UTF-8"
        )
    if not source or source.isspace():
        raise _invalid("it is empty", "内容为空")
    return source


def _check_depth(text: str, max_depth: int) -> None:
    # Before the decoder, which recurses in C. One pass over the marks that matter, nothing remembered but the level.
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth, quoted = 0, False
    for mark in _BRACKETS.finditer(text):
        sign = mark[0]
        if sign == '"':
            quoted = not quoted
        elif not quoted and sign in "[{":
            depth += 1
            if depth > max_depth:
                raise _too_deep(max_depth, _line(text, mark.start()), _line(text, mark.start(), zh=True))
        elif not quoted and sign in "]}":
            depth -= 1


def _line(text: str, position: int, *, zh: bool = False) -> str:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return f"第{line}行第{column}列" if zh else f"line {line}, column {column}"


# ------------------------------------------------------------------------------------------------ checking values


class _Check:
    """One walk over a value: ``left`` bytes may still come (also ends a structure that contains itself many times)."""

    def __init__(self, max_bytes: int, max_depth: int) -> None:
        self.max_bytes, self.max_depth = max_bytes, max_depth
        self.left = max_bytes

    def clean(self, value: Any, place: _Place, depth: int) -> Any:
        self._spend(1)
        match value:
            case None | bool():
                return value
            case str():
                return self._string(value, place)
            case int():
                return int(value) if abs(value) < _INTEGER_LIMIT else self._refuse(_TOO_MANY_DIGITS, place)
            case Decimal():
                return self._decimal(value, place)
            case _Pairs():
                return self._object(value, place, depth)
            case Mapping():
                return self._object(value.items(), place, depth)
            case list() | tuple():
                self._enter(place, depth)
                return [self.clean(item, (place, n), depth + 1) for n, item in enumerate(value)]
            case date():
                return self._date(value, place)
        return self._refuse(value if isinstance(value, _Refusal) else _unfit(value), place)

    def _object(self, pairs: Iterable[tuple[Any, Any]], place: _Place, depth: int) -> dict[str, Any]:
        self._enter(place, depth)
        result: dict[str, Any] = {}
        for key, item in pairs:
            if not isinstance(key, str):
                self._refuse(_Refusal(f"a key of type {type(key).__name__}", "键必须是文本"), place)
            name = self._string(key, (place, key))
            if name in result:
                self._refuse(_Refusal("the key comes twice", "键重复"), (place, name))
            result[name] = self.clean(item, (place, name), depth + 1)
        return result

    def _enter(self, place: _Place, depth: int) -> None:
        if depth > self.max_depth:
            raise _too_deep(self.max_depth, _path(place), _path(place))

    def _string(self, value: str, place: _Place) -> str:
        self._spend(len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
        if found := _FORBIDDEN.search(value):
            code = f"U+{ord(found[0]):04X}"
            kind = (
                ("a lone surrogate", "孤立代理项")
                if found[0] >= "\ud800"
                else ("a control character", "控制字符")
            )
            self._refuse(_Refusal(f"{kind[0]} ({code})", f"含有{kind[1]}（{code}）"), place)
        try:
            return str.__str__(nfc(value))
        except ValueError:
            return self._refuse(_Refusal("too many combining marks in a row", "连续的组合字符过多"), place)

    def _decimal(self, value: Decimal, place: _Place) -> Decimal:
        if not value.is_finite():
            self._refuse(_Refusal(f"{value} is not a JSON number", f"{value}不是JSON数字"), place)
        _, digits, exponent = value.as_tuple()
        if len(digits) > MAX_DIGITS or value.adjusted() >= MAX_DIGITS or -int(exponent) > MAX_DECIMALS:
            self._refuse(_TOO_MANY_DIGITS, place)
        return value.copy_abs() if value.is_zero() else value

    def _date(self, value: date, place: _Place) -> str:
        if not isinstance(value, datetime):
            return value.isoformat()
        try:
            return utc_text(value)
        except ValueError as error:
            return self._refuse(_Refusal(str(error), "时间须带时区"), place)

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _too_large(self.max_bytes)

    def _refuse(self, refusal: _Refusal, place: _Place) -> NoReturn:
        raise _invalid(refusal.en, refusal.zh, _path(place))


def _unfit(value: Any) -> _Refusal:
    kind = type(value).__name__
    if isinstance(value, float):
        return _Refusal(
            "a float cannot hold an amount exactly: give a Decimal or text", "浮点数不精确：请用Decimal或文本"
        )
    return _Refusal(f"a value of type {kind}", f"类型{kind}不是JSON值")


def _path(place: _Place) -> str:
    """``parts[1].price``; the place of the whole value is empty."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{sanitize_text(step, 40)}")
    return "".join(reversed(steps)).removeprefix(".")


def _plain(value: Any, integer: Callable[[int], Any]) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return integer(value)
        case Decimal():
            return decimal_text(value)
        case datetime():
            return utc_text(value)
        case date():
            return value.isoformat()
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError("a key that is not text is not JSON")
            return {str.__str__(key): _plain(item, integer) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, integer) for item in value]
    raise TypeError(
        f"{type(value).__name__} is not JSON" + (": use Decimal" if isinstance(value, float) else "")
    )


# --------------------------------------------------------------------------------------------------------- errors


def _invalid(en: str, zh: str, path: str = "") -> ValidationFailed:
    at = f"{path}: " if path else ""
    return ValidationFailed(
        ErrorCode.PAYLOAD_INVALID,
        {"reason": at + en, "reason_zh": (f"{path}：" if path else "") + zh, "path": path},
    )


def _too_deep(max_depth: int, at: str = "", at_zh: str = "") -> ValidationFailed:
    error = _invalid(f"nested deeper than {max_depth} levels", f"嵌套超过{max_depth}层")
    if at:
        error.params["reason"] += f" ({sanitize_text(at, 200)})"
        error.params["reason_zh"] += f"（{sanitize_text(at_zh, 200)}）"
    return error


def _too_large(max_bytes: int) -> ValidationFailed:
    return ValidationFailed(ErrorCode.PAYLOAD_TOO_LARGE, {"limit": f"{max_bytes:,} B"})
