"""The canonical form is the same for what means the same, and different for what does not."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from staging.contracts.status import Status, StatusCode
from staging.domain.canonical import canonical_json, decimal_text, fingerprint, nfc, payload_hash, utc_text
from staging.domain.intake import parse_json
from tests.support.json_values import decimals, json_values, texts, trees

SHANGHAI = timezone(timedelta(hours=8))


def meaning(value: Any) -> Any:
    """An independent statement of when two values are the same: by kind, number by value, text by NFC."""
    if value is None or isinstance(value, bool):
        return ("constant", str(value))
    if isinstance(value, int | Decimal):
        return ("number", Decimal(value))
    if isinstance(value, str):
        return ("text", unicodedata.normalize("NFC", value))
    if isinstance(value, dict):
        return ("object", frozenset((unicodedata.normalize("NFC", k), meaning(v)) for k, v in value.items()))
    return ("array", tuple(meaning(item) for item in value))


def rewritten(value: Any) -> Any:
    """The same meaning in other clothes: keys backwards, NFD, two more decimals, tuples for lists."""
    if isinstance(value, dict):
        items = reversed(list(value.items()))
        return {unicodedata.normalize("NFD", key): rewritten(item) for key, item in items}
    if isinstance(value, list):
        return tuple(rewritten(item) for item in value)
    if isinstance(value, str):
        return unicodedata.normalize("NFD", value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        sign, digits, exponent = Decimal(value).as_tuple()
        return Decimal((sign, (*digits, 0, 0), int(exponent) - 2))
    return value


@given(json_values)
def test_what_means_the_same_has_one_text(value: Any) -> None:
    assert meaning(rewritten(value)) == meaning(value)
    assert canonical_json(rewritten(value)) == canonical_json(value)
    assert payload_hash(rewritten(value)) == payload_hash(value)


few_numbers = [0, 1, -1, 10, Decimal("1.0"), Decimal("0.1"), Decimal("-0.0"), Decimal("1E1")]
few_texts = ["", "1", "null", "true", "é", "e\u0301", "[]", '"', "\\", ","]
few = st.sampled_from([None, True, False, *few_numbers, *few_texts])
small_trees = trees(few)


@given(small_trees, small_trees)
def test_two_texts_are_equal_exactly_when_the_meanings_are(left: Any, right: Any) -> None:
    assert (canonical_json(left) == canonical_json(right)) is (meaning(left) == meaning(right))


@given(json_values)
def test_the_text_is_json_and_reading_it_changes_nothing(value: Any) -> None:
    text = canonical_json(value)
    json.loads(text)
    read = parse_json(text, max_bytes=1_000_000, max_depth=100)
    assert meaning(read) == meaning(value)
    assert canonical_json(read) == text


@given(texts)
def test_nfc_is_what_unicode_says_and_final(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)
    assert nfc(nfc(text)) == nfc(text)


@given(decimals)
def test_a_decimal_in_plain_digits_keeps_its_value_and_its_scale(number: Decimal) -> None:
    text = decimal_text(number)
    assert "E" not in text
    assert Decimal(text) == number
    assert Decimal(text).as_tuple().exponent == number.as_tuple().exponent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (Decimal("1.0"), "1"),
        (Decimal("1.00"), "1"),
        (Decimal("1E0"), "1"),
        (Decimal("1E+3"), "1000"),
        (Decimal(100), "100"),
        (Decimal("0.10"), "0.1"),
        (Decimal("-0.00"), "0"),
        (Decimal("0E+3"), "0"),
        (Decimal("1E-7"), "0.0000001"),
        (Decimal("12345678901234567890123456789012345678.5"), "12345678901234567890123456789012345678.5"),
        (2**53 + 1, "9007199254740993"),
        (True, "true"),
        (None, "null"),
        ("1.00", '"1.00"'),
        ("", '""'),
        ('引号"与\\与\n', '"引号\\"与\\\\与\\n"'),
        ("😀", '"😀"'),
        ("e\u0301", '"é"'),
        (date(2026, 11, 30), '"2026-11-30"'),
        (datetime(2026, 11, 30, 8, tzinfo=UTC), '"2026-11-30T08:00:00Z"'),
        (datetime(2026, 11, 30, 16, tzinfo=SHANGHAI), '"2026-11-30T08:00:00Z"'),
        (datetime(2026, 11, 30, 8, 0, 0, 1500, tzinfo=UTC), '"2026-11-30T08:00:00.001500Z"'),
        (StatusCode.CONFLICT, "409"),
        (Status.FAIL, '"fail"'),
        ({}, "{}"),
        ((), "[]"),
        (
            {"é": 1, "z": [1, {"b": None, "a": True}], "\uffff": 0, "😀": 2},
            '{"z":[1,{"a":true,"b":null}],"é":1,"\uffff":0,"😀":2}',
        ),
    ],
)
def test_the_text_of(value: Any, text: str) -> None:
    assert canonical_json(value) == text


def test_keys_are_sorted_by_code_point_not_by_utf_16_unit() -> None:
    # In UTF-16, as Java and JavaScript sort, the emoji (a surrogate pair) would come first.
    assert canonical_json({"😀": 1, "\uffff": 2}) == '{"\uffff":2,"😀":1}'


def test_the_hash_is_sha256_over_utf8_and_the_fingerprint_is_the_same_function() -> None:
    value = {"客户": "上海", "qty": Decimal("2.50")}
    expected = "sha256:" + hashlib.sha256('{"qty":2.5,"客户":"上海"}'.encode()).hexdigest()
    assert payload_hash(value) == fingerprint(value) == expected
    # Written down so that no release changes it unnoticed: rows in the field carry such hashes.
    assert payload_hash({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("value", [1.0, float("nan"), {"a": [0.1 + 0.2]}, b"x", {1, 2}, {1: "a"}, object()])
def test_a_type_without_an_exact_text_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (Decimal("NaN"), "not a number"),
        (Decimal("-Infinity"), "not a number"),
        (Decimal("1E+999999"), "absurd"),
        (Decimal("1E-999999"), "absurd"),
        pytest.param(10**5000, "absurd", id="5001 digits"),
        (datetime(2026, 11, 30, 8), "time zone"),  # noqa: DTZ001 - the naive one is the point
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-8))), "calendar"),
        ({"é": 1, "e\u0301": 2}, "two keys"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
    ],
)
def test_a_value_without_an_exact_text_is_refused(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        canonical_json(value)


def test_a_long_run_of_combining_marks_is_refused_before_it_costs_quadratic_time() -> None:
    assert nfc("a" + "\u0301" * 30) == "á" + "\u0301" * 29
    with pytest.raises(ValueError, match="combining marks"):
        nfc("a" + "\u0301\u0323" * 80_000)  # would take most of a minute


def test_endless_nesting_and_a_structure_that_holds_itself_are_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(ValueError, match="deeper"):
        canonical_json(ring)


def test_utc_text_follows_the_zone_over_a_day_boundary() -> None:
    assert utc_text(datetime(2026, 12, 1, 7, 30, tzinfo=SHANGHAI)) == "2026-11-30T23:30:00Z"
