"""Canonical JSON: one text for all values that mean the same, so that a hash of it can be compared.

* objects: keys in NFC, sorted by code point; no white space; non-ASCII written as it is;
* strings in NFC;
* numbers by value: ``1``, ``Decimal("1.00")`` and ``Decimal("1E0")`` are all ``1``; ``-0`` is ``0``; never an exponent;
* ``date`` as ``2026-11-30``, aware ``datetime`` as UTC ``2026-11-30T08:00:00Z`` (as if that text had been given).

Strings are never looked into: ``"1.00"`` and ``"1.0"`` are two texts. Turning what a caller sent into the value its
column holds (``"1.0"`` → ``"1.00"``) is the adapter's business and happens before anything is hashed.

All functions raise ``TypeError`` for what has no place here (float, set, bytes …) and ``ValueError`` for a value that
cannot be written exactly (naive datetime, lone surrogate, keys equal after NFC, NaN, absurd size or depth).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from json.encoder import encode_basestring as _quoted
from operator import itemgetter
from typing import Any

MAX_DEPTH = 100
MAX_NUMBER_LENGTH = 1000  # characters of plain digits; guards against Decimal("1E+999999999")

# A longer run of combining marks is no writing of any language (Unicode's stream-safe text format says 30), and
# unicodedata.normalize sorts such a run in quadratic time: 240 kB of them took 39 s.
_MARKS = re.compile(rb"[^\0]{31}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical_json(value: Any) -> str:
    """Return the canonical text of ``value`` (None, bool, int, Decimal, str, date, datetime, mapping, list, tuple)."""
    parts: list[str] = []
    _write(value, 0, parts.append)
    return "".join(parts)


def payload_hash(value: Any) -> str:
    """Return ``"sha256:"`` and 64 hex digits over the canonical text of ``value``."""
    return _hash(canonical_json(value))


def hashes_to(text: str, expected: str) -> bool:
    """True if ``text`` is canonical and ``expected`` its ``payload_hash``; False says nothing of the value in it."""
    return _hash(text) == expected


def _hash(text: str) -> str:
    # What cannot be text (an altered row may hold it) has a hash, too: another one.
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


fingerprint = payload_hash  # the same function, by the name used for pins and target versions


def nfc(text: str) -> str:
    """Return ``text`` in NFC. ``ValueError`` for a lone surrogate or an endless run of combining marks."""
    if text.isascii():
        return text
    if _SURROGATE.search(text):
        raise ValueError("a lone surrogate is not text")
    if _MARKS.search(bytes(map(unicodedata.combining, text))):
        raise ValueError("more than 30 combining marks in a row")
    return unicodedata.normalize("NFC", text)


def decimal_text(value: Decimal) -> str:
    """Return ``value`` in plain digits with all of its decimals (``1.50``), no exponent, no minus before zero."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a number")
    if abs(value.adjusted()) > MAX_NUMBER_LENGTH:
        raise ValueError("a number of absurd size")
    # copy_abs, not abs(): arithmetic would round to the context's 28 digits.
    text = f"{value or value.copy_abs():f}"
    if len(text) > MAX_NUMBER_LENGTH and len(value.as_tuple().digits) > MAX_NUMBER_LENGTH:
        raise ValueError("a number of absurd size")
    return text


def utc_text(value: datetime) -> str:
    """Return an aware datetime as UTC ISO 8601 with ``Z``; fractions of a second only where there are any."""
    if value.utcoffset() is None:
        raise ValueError("a datetime without a time zone")
    try:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise ValueError("a datetime outside the calendar in UTC") from None


def _write(value: Any, depth: int, write: Callable[[str], None]) -> None:
    if type(value) is str:  # most are: for speed
        write(_quoted(value if value.isascii() else nfc(value)))
        return
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        write("{")
        for n, (key, item) in enumerate(_sorted(value)):
            write(f"{',' if n else ''}{_quoted(key)}:")
            _write(item, depth + 1, write)
        write("}")
    elif isinstance(value, list | tuple):
        write("[")
        for n, item in enumerate(value):
            if n:
                write(",")
            _write(item, depth + 1, write)
        write("]")
    else:
        write(_scalar(value))


def _sorted(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    items: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise TypeError(f"a key of type {type(key).__name__}")
        name = nfc(key)
        if name in items:
            raise ValueError(f"two keys are both {name!r} in NFC")
        items[name] = item
    return sorted(items.items(), key=itemgetter(0))


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(nfc(value))
        case int():
            if value.bit_length() > MAX_NUMBER_LENGTH * 3:
                raise ValueError("a number of absurd size")
            return int.__repr__(value)
        case Decimal():
            text = decimal_text(value)
            return text.rstrip("0").rstrip(".") if "." in text else text
        case datetime():
            return _quoted(utc_text(value))
        case date():
            return _quoted(value.isoformat())
    raise TypeError(
        f"{type(value).__name__} has no canonical form"
        + (": use Decimal" if isinstance(value, float) else "")
    )
