"""Coercion: exact or refused, the same result whatever way a value was written, and stable when repeated."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from staging.contracts.form import FormField
from workers.erp.sql.coerce import BadValue, coerce, decimal_value, exact_decimal


def _field(kind: str, **more: Any) -> FormField:
    return FormField.model_validate(
        {"name": "f", "column": "f", "label": {"zh": "f", "en": "f"}, "type": kind, **more}
    )


PRICE = _field("decimal", decimals=4)
DAYS = _field("integer", minimum=1, maximum=365)
TITLE = _field("string", length=5)
CHOICE = _field(
    "choice",
    choices=[
        {"value": "a", "label": {"zh": "甲", "en": "b"}},
        {"value": "b", "label": {"zh": "乙", "en": "B"}},
    ],
)
WIDE = _field("decimal", precision=38, decimals=10)


@pytest.mark.parametrize(
    ("field", "raw", "value"),
    [
        (PRICE, "1234.5", "1234.5000"),
        (PRICE, Decimal("1E+3"), "1000.0000"),
        (PRICE, Decimal("1.50000000"), "1.5000"),
        (PRICE, "1.50000000", "1.5000"),
        (PRICE, "-0", "0.0000"),
        (PRICE, 0, "0.0000"),
        (PRICE, "99999999999999.9999", "99999999999999.9999"),
        (WIDE, "9999999999999999999999999999.0123456789", "9999999999999999999999999999.0123456789"),
        (DAYS, "30", 30),
        (DAYS, Decimal("30.0"), 30),
        (_field("integer"), 2**63 - 1, 2**63 - 1),
        (TITLE, "12345", "12345"),
        (TITLE, "e\u0301" * 5, "é" * 5),
        (TITLE, " a ", " a "),
        (_field("text"), "a\tb\r\nc", "a\tb\r\nc"),
        (CHOICE, "a", "a"),
        (CHOICE, "甲", "a"),
        (CHOICE, "b", "b"),
        (_field("date"), "2024-02-29", "2024-02-29"),
        (_field("datetime"), "2026-11-30T08:00+08:00", "2026-11-30T00:00:00Z"),
        (_field("datetime"), "2026-11-30 08:00:00.5Z", "2026-11-30T08:00:00.500000Z"),
        (_field("boolean"), False, False),
        (PRICE, None, None),
    ],
)
def test_a_value_is_read_exactly_and_goes_in_again(field: FormField, raw: Any, value: Any) -> None:
    assert coerce(field, raw) == value
    assert type(coerce(field, raw)) is type(value)
    assert coerce(field, value) == value


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        (PRICE, "100000000000000"),
        (PRICE, "0.00001"),
        (PRICE, "1,000"),
        (PRICE, "1e3"),
        (PRICE, ".5"),
        (PRICE, "5."),
        (PRICE, "0x10"),
        (PRICE, "１"),
        (PRICE, "1\n"),
        (PRICE, ""),
        (PRICE, True),
        (PRICE, Decimal("sNaN")),
        (PRICE, Decimal("1E+999999999")),
        (PRICE, "9" * 100_000),
        (_field("integer"), 2**63),
        (_field("integer"), "1.5"),
        (TITLE, "123456"),
        (TITLE, "a\x7f"),
        (TITLE, "a\x85"),
        (TITLE, "a\u0301" * 31 + "\u0301" * 31),
        (_field("text"), "a\x00"),
        (CHOICE, "B "),
        (CHOICE, "c"),
        (CHOICE, 1),
        (_field("date"), "2026-02-29"),
        (_field("date"), "0000-01-01"),
        (_field("datetime"), "2026-11-30T25:00:00Z"),
        (_field("datetime"), "0001-01-01T00:00:00+23:59"),
        (_field("datetime"), "2026-11-30T08:00:00"),
        (_field("boolean"), 1),
        (_field("boolean"), "true"),
        (_field("reference", reference={"form": "x"}), 17),
    ],
)
def test_what_cannot_be_read_exactly_says_why_in_both_languages(field: FormField, raw: Any) -> None:
    with pytest.raises(BadValue) as caught:
        coerce(field, raw)
    assert caught.value.reason["zh"]
    assert caught.value.reason["en"]
    assert caught.value.reason["zh"] != caught.value.reason["en"]


def test_a_label_that_is_another_choices_value_never_hides_it() -> None:
    assert coerce(CHOICE, "b") == "b"
    assert coerce(CHOICE, "B") == "b"


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=4, min_value=-(10**14) + 1, max_value=10**14 - 1
    )
)
def test_numbers_and_their_texts_are_the_same_amount(number: Decimal) -> None:
    assert decimal_value(number, 4, 18) == decimal_value(f"{number:f}", 4, 18) == number
    assert coerce(PRICE, number) == coerce(PRICE, coerce(PRICE, number))


@given(
    st.text(),
    st.sampled_from([PRICE, DAYS, TITLE, CHOICE, _field("date"), _field("datetime"), _field("boolean")]),
)
def test_any_text_is_a_value_or_a_reason(text: str, field: FormField) -> None:
    try:
        value = coerce(field, text)
    except BadValue:
        return
    assert coerce(field, value) == value


@given(st.one_of(st.integers(), st.booleans(), st.decimals(), st.lists(st.integers()), st.none()))
def test_any_json_value_is_a_value_or_a_reason(raw: Any) -> None:
    for field in (PRICE, DAYS, TITLE, CHOICE, WIDE, _field("boolean"), _field("date")):
        try:
            value = coerce(field, raw)
        except BadValue:
            continue
        assert coerce(field, value) == value


def test_a_commands_amount_is_read_by_the_same_rules() -> None:
    class Input(BaseModel):
        amount: exact_decimal(2)  # type: ignore[valid-type]

    assert Input.model_validate({"amount": "1.50"}).amount == Decimal("1.50")
    assert Input.model_validate({"amount": Decimal(2)}).model_dump(mode="json") == {"amount": "2.00"}
    for bad in ("1,000", "0.001", True, 0.5):
        with pytest.raises(ValueError, match="amount"):
            Input.model_validate({"amount": bad})
