"""What may come in is decided once, strictly, and with a reason; what goes out is exact."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from staging.contracts.error import ErrorCode
from staging.contracts.status import Status, StatusCode
from staging.domain.canonical import payload_hash
from staging.domain.errors import ValidationFailed
from staging.domain.intake import (
    check_value,
    dump_json,
    load_json,
    parse_json,
    require_object,
    sanitize_text,
    wire_value,
)
from tests.support.hostile_json import ACCEPTED, REFUSED
from tests.support.json_values import json_values, texts, trees

MAX_BYTES, MAX_DEPTH = 1_000_000, 12


def parse(source: Any) -> Any:
    return parse_json(source, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)


def check(value: Any) -> Any:
    return check_value(value, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)


def refusal_of(source: Any) -> ValidationFailed:
    with pytest.raises(ValidationFailed) as caught:
        parse(source)
    return caught.value


def kinds(value: Any) -> Iterator[type]:
    yield type(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from kinds(item)


@pytest.mark.parametrize(("text", "value"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_exactly(text: str, value: Any) -> None:
    for source in (text, text.encode()):
        read = parse(source)
        assert read == value
        assert repr(read) == repr(value)  # 1 and Decimal("1.0") are equal, but not the same


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_reason_in_both_languages(text: str | bytes | None, reason: str) -> None:
    error = refusal_of(text)
    assert error.code is ErrorCode.PAYLOAD_INVALID
    assert reason in error.message("en")
    assert "…" not in error.message("zh").replace("{…}", "")  # no placeholder without its value
    assert error.status_code is StatusCode.PAYLOAD_INVALID
    # The refusal itself has to be storable: it becomes an error text in the row.
    for locale in ("zh", "en"):
        assert sanitize_text(error.message(locale), 4000) == error.message(locale)


def test_a_refusal_says_where() -> None:
    assert refusal_of('{"parts": [{}, {"price": NaN}]}').params["reason"].startswith("parts[1].price: ")
    assert refusal_of('{"a": 1,\n "b": }').params["reason"].startswith("line 2, column 7: ")
    assert refusal_of('{"a": 1,\n "b": }').params["reason_zh"].startswith("第2行第7列")
    assert "line 1, column 13" in refusal_of("[" * 13 + "]" * 13).params["reason"]
    assert refusal_of('{"a": {"b": 1, "b": 2}}').params["path"] == "a.b"


@pytest.mark.parametrize(
    "text", ['"' + "x" * 10_000_000 + '"', b'"' + b"x" * 10_000_000 + b'"', '"' + "中" * 333_334 + '"']
)
def test_too_large_is_its_own_error(text: str | bytes) -> None:
    error = refusal_of(text)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert error.http_status == 413
    assert "1,000,000 B" in error.message("zh")


def test_the_limit_is_counted_in_bytes_and_may_be_reached() -> None:
    assert parse('"' + "x" * (MAX_BYTES - 2) + '"') == "x" * (MAX_BYTES - 2)
    assert refusal_of('"' + "x" * (MAX_BYTES - 1) + '"').code is ErrorCode.PAYLOAD_TOO_LARGE
    assert parse_json('"中"', max_bytes=5, max_depth=1) == "中"
    with pytest.raises(ValidationFailed):
        parse_json('"中"', max_bytes=4, max_depth=1)


def test_depth_counts_containers() -> None:
    assert parse_json("1", max_bytes=10, max_depth=0) == 1
    assert parse("[" * 12 + "]" * 12)
    assert parse('["' + "[" * 1000 + '"]') == ["[" * 1000]  # brackets in a text are text
    assert parse('["\\"' + "[" * 1000 + '"]') == ['"' + "[" * 1000]
    assert "deeper than 12" in refusal_of('{"a":' * 13 + "1" + "}" * 13).message("en")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        "[" + "{}," * 300_000 + "1]",
        '"' + "\\\\" * 499_000 + '"',
        "1" * 999_999,
        "0." + "1" * 999_990,
        "1e" + "9" * 999_990,
        '["' + "a\u0301\u0323" * 10 + "\u0301\u0323" * 190_000 + '"]',
        '{"' + "k" * 300_000 + '":[' + "1," * 300_000 + "NaN]}",
        "{" + ",".join(f'"k{n}":1' for n in range(70_000)) + ',"k0":1}',
        " " * 999_999,
    ],
    ids=[
        "brackets",
        "objects",
        "backslashes",
        "digits",
        "decimals",
        "exponent",
        "marks",
        "path",
        "keys",
        "spaces",
    ],
)
def test_a_megabyte_of_malice_costs_no_more_than_a_megabyte(text: str) -> None:
    started, message = time.process_time(), ""
    try:
        parse(text)
    except ValidationFailed as error:
        message = error.message("zh")
    assert time.process_time() - started < 5  # about one second here at worst; quadratic would be minutes
    assert len(message) < 300


# ------------------------------------------------------------------------------------------------- properties


@given(trees(st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts))
def test_what_was_dumped_is_read_back_exactly_and_hashes_alike(value: Any) -> None:
    text = dump_json(value)
    assert load_json(text) == parse(text) == check(value)
    assert payload_hash(load_json(text)) == payload_hash(value)


@given(json_values)
def test_checking_is_final_and_leaves_only_json_types(value: Any) -> None:
    checked = check(value)
    assert check(checked) == checked
    assert set(kinds(checked)) <= {type(None), bool, int, Decimal, str, list, dict}
    assert payload_hash(checked) == payload_hash(value)


json_marks = st.text(st.sampled_from('[]{}:,"\\ 019.-+eEnulltrfas\0\ud800é\u0301\ufeffNI'), max_size=30)


@given(json_marks | st.text() | st.binary())
def test_any_text_is_either_parsed_or_refused_and_read_as_json_reads_it(source: str | bytes) -> None:
    try:
        value = parse(source)
    except ValidationFailed:
        return
    assert set(kinds(value)) <= {type(None), bool, int, Decimal, str, list, dict}
    again = json.loads(source, parse_float=Decimal, parse_constant=pytest.fail)
    assert payload_hash(again) == payload_hash(value)


# ---------------------------------------------------------------------------------------- from a Python caller


def test_a_float_is_refused_and_told_what_to_give_instead() -> None:
    with pytest.raises(ValidationFailed) as caught:
        check({"lines": [{"price": 0.1 + 0.2}]})
    assert "lines[0].price: " in caught.value.message("en")
    assert "Decimal" in caught.value.message("en")
    assert "Decimal" in caught.value.message("zh")


class Ring(list[Any]):
    def __init__(self) -> None:
        super().__init__([self])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1: "a"}, "a key of type int"),
        ({"a": {1, 2}}, "a: a value of type set"),
        (b"{}", "a value of type bytes"),
        (object(), "a value of type object"),
        (Decimal("NaN"), "NaN is not"),
        (Decimal("sNaN"), "sNaN is not"),
        (Decimal("Infinity"), "Infinity is not"),
        (Decimal("1E+38"), "38 digits"),
        (Decimal("1E-61"), "60 decimals"),
        (10**38, "38 digits"),
        (-(10**5000), "38 digits"),
        ("a\0", "U+0000"),
        ("\ud83d\ude00", "surrogate"),
        ({"é": 1, "e\u0301": 2}, "é: the key comes twice"),
        (datetime(2026, 11, 30), "time zone"),  # noqa: DTZ001 - the naive one is the point
        (Ring(), "deeper than 12"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() and "\0" not in value else "",
)
def test_a_python_value_is_refused_by_the_same_rules(value: Any, reason: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        check(value)
    assert caught.value.code is ErrorCode.PAYLOAD_INVALID
    assert reason in caught.value.message("en")


def test_a_structure_that_unfolds_without_end_runs_into_the_size_limit() -> None:
    bomb: list[Any] = [1] * 10
    for _ in range(10):
        bomb = [bomb] * 10
    with pytest.raises(ValidationFailed) as caught:
        check(bomb)
    assert caught.value.code is ErrorCode.PAYLOAD_TOO_LARGE


def test_a_depth_limit_above_what_python_can_walk_still_ends_in_a_refusal() -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse_json("[" * 100_000 + "]" * 100_000, max_bytes=MAX_BYTES, max_depth=200_000)
    assert "deeper" in caught.value.message("en")
    with pytest.raises(ValidationFailed):
        check_value(Ring(), max_bytes=MAX_BYTES, max_depth=200_000)


def test_python_values_become_json_values() -> None:
    shanghai = timezone(timedelta(hours=8))
    value = {
        "on": date(2026, 11, 30),
        "at": datetime(2026, 11, 30, 16, tzinfo=shanghai),
        "pair": (StatusCode.EXECUTED, Status.SUCCESS),
        "e\u0301": Decimal("-0.00"),
    }
    read = check(value)
    assert repr(read) == repr(
        {"on": "2026-11-30", "at": "2026-11-30T08:00:00Z", "pair": [200, "success"], "é": Decimal("0.00")}
    )
    assert "on" in value  # a copy: the caller's structure is left alone


def test_a_payload_is_an_object() -> None:
    assert require_object({"a": 1}) == {"a": 1}
    others: list[Any] = [[], "x", 1, None, True]
    for value in others:
        with pytest.raises(ValidationFailed):
            require_object(value)


# -------------------------------------------------------------------------------------------------------- out


def test_amounts_and_times_go_out_as_exact_strings() -> None:
    value = [Decimal("1.50"), Decimal("123456789012345678.90"), Decimal("-0.0"), Decimal("1E+3")]
    assert wire_value(value) == ["1.50", "123456789012345678.90", "0.0", "1000"]
    assert dump_json({"amounts": value}) == '{"amounts":["1.50","123456789012345678.90","0.0","1000"]}'
    times = [date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)]
    assert dump_json(times) == '["2026-01-02","2026-01-02T00:00:00Z"]'


def test_integers_are_stored_in_all_their_digits_and_sent_as_text_where_javascript_would_round() -> None:
    big = [2**53 - 1, 2**53, 2**53 + 1, -(2**53), 2**63, True]
    assert load_json(dump_json(big)) == big
    assert wire_value(big) == [
        9007199254740991,
        "9007199254740992",
        "9007199254740993",
        "-9007199254740992",
        "9223372036854775808",
        True,
    ]
    assert wire_value([StatusCode.EXECUTED, Status.FAIL, None]) == [200, "fail", None]


@pytest.mark.parametrize("value", [1.5, {"a": float("nan")}, {1: 2}, {None: 1}, {0: 1}, b"x", {1}])
def test_what_has_no_exact_json_does_not_go_out(value: Any) -> None:
    for function in (dump_json, wire_value):
        with pytest.raises(TypeError):
            function(value)


def test_texts_of_an_erp_that_intake_would_refuse_survive_storage() -> None:
    # A pinned customer name pasted from a spreadsheet may hold a vertical tab.
    value = {"name": "上海\x0b一厂", "nfd": "e\u0301"}
    assert load_json(dump_json(value)) == value
    with pytest.raises(ValueError, match="surrogate"):
        dump_json({"name": "\ud800"})


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[" + "1" * 5000 + "]", b"\xff"], ids=range(5))
def test_stored_text_that_was_tampered_with_beyond_reading_is_a_refusal_too(text: str | bytes) -> None:
    with pytest.raises(ValidationFailed):
        load_json(text)


@pytest.mark.parametrize(
    ("text", "limit", "clean"),
    [
        ("", 5, ""),
        ("12345", 5, "12345"),
        ("123456", 5, "1234…"),
        ("引号'引号'", 4, "引号'…"),
        ("😀😀😀", 2, "😀…"),
        ("a\0b\ud800c", 10, "a\ufffdb\ufffdc"),
        ("line\nline\ttab\r\x1b[31m", 40, "line\nline\ttab\r\ufffd[31m"),
        ("ab", 1, "…"),
    ],
)
def test_error_texts_are_made_storable(text: str, limit: int, clean: str) -> None:
    assert sanitize_text(text, limit) == clean
    assert sanitize_text(clean, limit) == clean
    clean.encode()
