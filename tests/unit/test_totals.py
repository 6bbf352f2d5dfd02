"""Computed fields: exact, rounded half-up once, and never guessed from something empty."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, strategies as st

from staging.contracts.form import FormField
from workers.erp.sql.totals import computed_values


def fields(**computed: Any) -> dict[str, FormField]:
    """Decimal fields of two decimals by name; a value other than None is the field's ``computed``."""
    made = {}
    for name, rule in computed.items():
        label = {"zh": name, "en": name}
        data = {
            "name": name,
            "column": name,
            "label": label,
            "type": "decimal",
            "decimals": 2,
            "computed": rule,
        }
        made[name] = FormField.model_validate(data)
    return made


LINE = fields(quantity=None, price=None, amount={"product": ["quantity", "price"]})


def amount(quantity: Any, price: Any) -> Decimal | None:
    return computed_values(LINE, {"quantity": quantity, "price": price}, {})["amount"]


def test_half_a_cent_goes_up_away_from_zero_like_on_an_invoice() -> None:
    assert amount("1", "0.005") == Decimal("0.01")
    assert amount("1", "0.0149999999") == Decimal("0.01")
    assert amount("-1", "0.005") == Decimal("-0.01")
    assert amount(3, Decimal("0.335")) == Decimal("1.01")  # 1.005; as a binary float it would be 1.00


def test_a_product_with_an_empty_factor_is_empty() -> None:
    assert amount(None, "1") is None
    assert amount("1", None) is None
    assert computed_values(LINE, {}, {}) == {"amount": None}


def test_a_sum_adds_what_is_there_and_an_untouched_child_keeps_its_sum() -> None:
    total = fields(total={"sum": "lines.amount"})
    lines: list[dict[str, Any]] = [{"amount": "0.10"}, {"amount": None}, {}, {"amount": Decimal("0.20")}]
    assert computed_values(total, {}, {"lines": lines}) == {"total": Decimal("0.30")}
    assert computed_values(total, {"total": "9.00"}, {"lines": []}) == {"total": Decimal("0.00")}
    assert computed_values(total, {"total": "9.00"}, {}) == {"total": Decimal("9.00")}
    assert computed_values(total, {}, {}) == {"total": None}


def test_computed_fields_may_build_on_each_other_in_any_order_of_the_form() -> None:
    chain = fields(
        gross={"product": ["net", "factor"]},
        net={"sum": "lines.amount"},
        factor=None,
        twice={"product": ["gross", "two"]},
        two=None,
    )
    values = {"factor": "1.13", "two": 2}
    done = computed_values(chain, values, {"lines": [{"amount": "100.00"}]})
    assert done == {"gross": Decimal("113.00"), "net": Decimal("100.00"), "twice": Decimal("226.00")}


def test_a_field_computed_from_itself_stays_empty_instead_of_hanging() -> None:
    assert computed_values(fields(a={"product": ["b"]}, b={"product": ["a"]}), {}, {}) == {
        "a": None,
        "b": None,
    }


@given(st.lists(st.decimals(min_value=-(10**15), max_value=10**15, places=2), max_size=50))
def test_a_sum_of_exact_amounts_is_exact_whatever_their_size(amounts: list[Decimal]) -> None:
    total = computed_values(
        fields(total={"sum": "lines.a"}), {}, {"lines": [{"a": str(a)} for a in amounts]}
    )["total"]
    assert total is not None
    assert int(total * 100) == sum(int(a * 100) for a in amounts)
