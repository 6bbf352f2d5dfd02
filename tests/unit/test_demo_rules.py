"""Prices by quantity step, and what may be a title."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel, ValidationError

from workers.erp.demo.handlers.pricing import Step, factor_for, priced
from workers.erp.demo.handlers.title import Title, title_value
from workers.erp.sql.coerce import BadValue

STEPS = [Step(Decimal(500), Decimal("0.9")), Step(Decimal(100), Decimal("0.95"))]


@pytest.mark.parametrize(
    ("quantity", "factor"),
    [("99.999", "1"), ("100", "0.95"), ("499.999", "0.95"), ("500", "0.9"), ("1000000", "0.9")],
)
def test_the_highest_step_reached_decides(quantity: str, factor: str) -> None:
    assert factor_for(STEPS, Decimal(quantity)) == Decimal(factor)
    assert factor_for([], Decimal(quantity)) == 1


def test_price_and_amount_are_rounded_half_up_and_the_amount_comes_from_the_rounded_price() -> None:
    line = priced(Decimal("0.3333"), [Step(Decimal(1), Decimal("0.95"))], Decimal(3), Decimal(3))
    assert line.price == Decimal("0.3166")  # 0.316635
    assert line.amount == Decimal("0.95")  # 0.9498
    assert priced(Decimal("0.0050"), [], Decimal(1), Decimal(1)).amount == Decimal("0.01")


def test_the_whole_orders_quantity_decides_the_step_of_each_line() -> None:
    assert priced(Decimal(10), STEPS, Decimal(60), Decimal(120)).amount == Decimal("570.00")


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        ("  新品礼盒 发布 ", "新品礼盒 发布"),
        ("\u3000全角空格\u3000", "全角空格"),
        ("Cafe\u0301", "Café"),
        ("字" * 60, "字" * 60),
        ("e\u0301" * 60, "é" * 60),
        (" " * 50 + "短" + " " * 50, "短"),
        ("🎉" * 60, "🎉" * 60),
        ("0", "0"),
    ],
)
def test_a_title_is_composed_and_trimmed_before_it_is_counted(raw: str, stored: str) -> None:
    assert title_value(raw) == stored


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "must not be empty"),
        ("   \u3000", "must not be empty"),
        ("\u200b\u200d\ufeff", "must not be empty"),
        ("字" * 61, "has 61"),
        ("👨‍👩‍👧" * 13, "has 65"),
        ("两\n行", "control characters"),
        ("\0", "control characters"),
        (7, "text is expected"),
        (None, "text is expected"),
    ],
)
def test_what_is_no_title_is_refused_with_its_reason(raw: object, reason: str) -> None:
    with pytest.raises(BadValue, match=reason) as caught:
        title_value(raw)
    assert set(caught.value.reason) == {"zh", "en"}


def test_the_pydantic_type_carries_both_languages() -> None:
    class Input(BaseModel):
        title: Title

    with pytest.raises(ValidationError) as caught:
        Input.model_validate({"title": ""})
    assert caught.value.errors()[0]["ctx"] == {"zh": "标题不能为空", "en": "the title must not be empty"}
