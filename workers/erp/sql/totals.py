"""Computed fields (``Computed``): products on a line, sums over child lines. Pure, exact, rounded half-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any

from staging.contracts.form import FormField
from workers.erp.sql.values import exact, rounded

Values = Mapping[str, Any]
_DIGITS = 120  # of intermediate results: a product of three 38-digit factors stays exact before it is rounded


def computed_values(
    fields: Mapping[str, FormField], values: Values, lines: Mapping[str, Sequence[Values]]
) -> dict[str, Decimal | None]:
    """Return every computed field of one row: ``values`` by public name, ``lines`` by child name (computed already).

    A product with an empty factor is None; a sum counts empty amounts as 0, and over a child that ``lines`` does not
    have (nobody touched it) it stays what ``values`` says. Values may be Decimal, int or exact text.
    """
    done: dict[str, Decimal | None] = {}

    def value(name: str) -> Decimal | None:
        field = fields.get(name)
        if field is None or field.computed is None:
            given = values.get(name)
            return None if given is None else exact(given)
        if name not in done:
            done[name] = None  # a field computed from itself stays empty instead of recursing
            done[name] = compute(field)
        return done[name]

    def compute(field: FormField) -> Decimal | None:
        rule = field.computed
        if rule is None:
            return None
        if rule.sum:
            child, _, name = rule.sum.partition(".")
            if child not in lines:
                return None if values.get(field.name) is None else exact(values[field.name])
            amounts = (line.get(name) for line in lines.get(child, ()))
            return rounded(sum((exact(a) for a in amounts if a is not None), Decimal(0)), field)
        factors = [value(name) for name in rule.product]
        product = Decimal(1)
        for factor in factors:
            if factor is None:
                return None
            product *= factor
        return rounded(product, field)

    with localcontext() as context:
        context.prec = _DIGITS
        return {name: value(name) for name, field in fields.items() if field.computed}
