"""JSON texts that some database, driver or reader would take differently from the others, and our one decision.

``ACCEPTED``: name → (text, value); ``REFUSED``: name → (text, part of the English reason).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

ACCEPTED: dict[str, tuple[str, Any]] = {
    "empty object": ("{}", {}),
    "white space": (' \t\r\n{ "a" : [ ] } \n', {"a": []}),
    "constants": ('{"a": true, "b": false, "c": null}', {"a": True, "b": False, "c": None}),
    "zero": ("[0, -0, 0.0, -0.0, 0e0]", [0, 0, Decimal("0.0"), Decimal("0.0"), Decimal(0)]),
    "2^53+1": ('{"n": 9007199254740993}', {"n": 9007199254740993}),
    "2^63": ("[9223372036854775807, 9223372036854775808]", [9223372036854775807, 9223372036854775808]),
    "0.1+0.2": ("[0.1, 0.2, 0.3]", [Decimal("0.1"), Decimal("0.2"), Decimal("0.3")]),
    "0.30000000000000004": ("[0.30000000000000004]", [Decimal("0.30000000000000004")]),
    "18 digits": ('{"a": 12345678901234.5678}', {"a": Decimal("12345678901234.5678")}),
    "38 digits": ("[" + "9" * 38 + "]", [int("9" * 38)]),
    "38 digits with a point": ("[" + "9" * 20 + "." + "9" * 18 + "]", [Decimal("9" * 20 + "." + "9" * 18)]),
    "scale": ("[1.00, 1.0, 1]", [Decimal("1.00"), Decimal("1.0"), 1]),
    "exponent": ("[1e2, 1E-2, 1.5e+3]", [Decimal("1E+2"), Decimal("0.01"), Decimal("1.5E+3")]),
    "smallest": ("[1e-60]", [Decimal("1E-60")]),
    "decimal text stays text": ('["1.00", "1,000", "一千"]', ["1.00", "1,000", "一千"]),
    "sql in text": ('{"a": "\'; DROP TABLE ai_op_queue; --"}', {"a": "'; DROP TABLE ai_op_queue; --"}),
    "sql in a key": ('{"a\\"; DROP TABLE x; --": 1}', {'a"; DROP TABLE x; --': 1}),
    "like and format places": (
        '["%_%", "{0}", "%s", ":a", "$1", "?"]',
        ["%_%", "{0}", "%s", ":a", "$1", "?"],
    ),
    "backslashes": ('["\\\\", "C:\\\\new", "\\\\u0000"]', ["\\", "C:\\new", "\\u0000"]),
    "emoji": ('{"😀": "👨‍👩‍👧", "e": "\\ud83d\\ude00"}', {"😀": "👨‍👩‍👧", "e": "😀"}),
    "rare chinese": ('["𠮷野家", "〇", "（全角）"]', ["𠮷野家", "〇", "（全角）"]),
    "nfd becomes nfc": ('{"e\u0301": "e\u0301"}', {"é": "é"}),
    "tab and line breaks": ('["a\\tb\\r\\nc"]', ["a\tb\r\nc"]),
    "delete and line separators": ('["\x7f\u2028\u2029\u0085"]', ["\x7f\u2028\u2029\u0085"]),
    "noncharacter": ('["\uffff\U0010ffff"]', ["\uffff\U0010ffff"]),
    "bom inside text": ('["\ufeffa"]', ["\ufeffa"]),
    "trailing blanks": ('{"a ": "b ", "A": 1, "a": 2}', {"a ": "b ", "A": 1, "a": 2}),
    "long text": ('["' + "中" * 50_000 + '"]', ["中" * 50_000]),
}

REFUSED: dict[str, tuple[str | bytes | None, str]] = {
    "nothing": (None, "text is expected"),
    "empty": ("", "empty"),
    "blank": (" \n\t ", "empty"),
    "not json": ("hello", "line 1, column 1"),
    "single quotes": ("{'a': 1}", "line 1, column 2"),
    "trailing comma": ('{"a": 1,}', "line 1"),
    "comment": ('{"a": 1} // one', "line 1, column 10"),
    "two values": ("{} {}", "line 1, column 4"),
    "cut off": ('{"a": [1, 2', "line 1"),
    "leading zero": ("[01]", "line 1"),
    "leading plus": ("[+1]", "line 1"),
    "hex": ("[0x10]", "line 1"),
    "bare point": ("[.5]", "line 1"),
    "full-width digits": ("[１]", "line 1"),
    "bom": ("\ufeff{}", "byte order mark"),
    "bom in bytes": (b"\xef\xbb\xbf{}", "byte order mark"),
    "utf-16": ("{}".encode("utf-16"), "not UTF-8"),
    "gbk": ('{"a": "中文"}'.encode("gbk"), "byte 8 is not UTF-8"),
    "overlong utf-8": (b'["\xc0\x80"]', "not UTF-8"),
    "surrogate in utf-8": (b'["\xed\xa0\x80"]', "not UTF-8"),
    "NaN": ('{"a": NaN}', "a: NaN is not a JSON number"),
    "Infinity": ('{"a": [Infinity]}', "a[0]: Infinity is not"),
    "-Infinity": ('{"a": -Infinity}', "-Infinity is not"),
    "1e400": ("[1e400]", "38 digits"),
    "1e-400": ("[1e-400]", "60 decimals"),
    "1e38": ("[1e38]", "38 digits"),
    "0e400": ("[0e400]", "38 digits"),
    "1e999999999999": ("[1e999999999999]", "38 digits"),
    "39 digits": ("[" + "9" * 39 + "]", "38 digits"),
    "39 digits with a point": ("[" + "9" * 20 + "." + "9" * 19 + "]", "38 digits"),
    "5000 digits": ("[-" + "9" * 5000 + "]", "38 digits"),
    "duplicate key": ('{"amount": 1, "amount": 9}', "amount: the key comes twice"),
    "duplicate key, same value": ('{"a": {"b": 1, "b": 1}}', "a.b: the key comes twice"),
    "duplicate key by escape": ('{"a": 1, "\\u0061": 2}', "a: the key comes twice"),
    "duplicate key by nfc": ('{"é": 1, "e\u0301": 2}', "é: the key comes twice"),
    "nul": ('{"a": "x\\u0000y"}', "a: a control character (U+0000)"),
    "nul in a key": ('{"a\\u0000": 1}', "U+0000"),
    "raw nul": ('{"a": "x\0y"}', "line 1"),
    "escape character": ('["\\u001b[31m"]', "U+001B"),
    "vertical tab": ('["a\\u000bb"]', "U+000B"),
    "raw line break in text": ('["a\nb"]', "line 1"),
    "lone high surrogate": ('["\\ud800"]', "a lone surrogate (U+D800)"),
    "lone low surrogate": ('["\\udc00"]', "a lone surrogate (U+DC00)"),
    "surrogates the wrong way round": ('["\\ude00\\ud83d"]', "a lone surrogate (U+DE00)"),
    "lone surrogate in a key": ('{"\\ud83d": 1}', "a lone surrogate"),
    "raw surrogate": ('["\ud800"]', "a lone surrogate"),
    "deep": ("[" * 100_000 + "]" * 100_000, "deeper than 12 levels"),
    "deep and cut off": ('{"a":' * 100_000, "deeper than 12 levels"),
    "zalgo": ('["Z' + "\\u0301" * 31 + '"]', "combining marks"),
}

_LITERALS = {
    "sqlite": "CAST(x'{}' AS TEXT)",
    "postgresql": "convert_from('\\x{}', 'UTF8')",
    "mariadb": "x'{}'",
}


def text_literal(kind: str, content: bytes) -> str:
    """``content`` as an SQL text literal, written as a program would that cares for no encoding."""
    return _LITERALS[kind].format(content.hex())
