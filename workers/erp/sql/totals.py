"""Computed fields (``Computed``): products on a line, sums over child lines. Pure, exact, rounded half-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

from staging.contracts.form import FormField
from workers.erp.sql.values import exact, rounded

Values = Mapping[str, Any]
# Intermediate results: a product of three 38-digit factors stays exact before it is rounded.
_WIDE = Context(prec=120)
_ZERO, _ONE = Decimal(0), Decimal(1)


def computed_values(
    fields: Mapping[str, FormField], values: Values, lines: Mapping[str, Sequence[Values]]
) -> dict[str, Decimal | None]:
    """Return every computed field of one row: ``values`` by public name, ``lines`` by child name (computed already).

    A product with an empty factor is None; a sum counts empty amounts as 0, and over a child that ``lines`` does not
    have (nobody touched it) it stays what ``values`` says. Values may be Decimal, int or exact text.
    """
    row = _Row(fields, values, lines, {})
    return {name: row.value(name) for name, field in fields.items() if field.computed}


class _Row:
    __slots__ = ("_done", "_fields", "_lines", "_values")

    def __init__(
        self,
        fields: Mapping[str, FormField],
        values: Values,
        lines: Mapping[str, Sequence[Values]],
        done: dict[str, Decimal | None],
    ) -> None:
        self._fields, self._values, self._lines, self._done = fields, values, lines, done

    def value(self, name: str) -> Decimal | None:
        field = self._fields.get(name)
        if field is None or field.computed is None:
            given = self._values.get(name)
            return None if given is None else exact(given)
        if name not in self._done:
            self._done[name] = None  # a field computed from itself stays empty instead of recursing
            rule = field.computed
            self._done[name] = self._sum(field, rule.sum) if rule.sum else self._product(field, rule.product)
        return self._done[name]

    def _sum(self, field: FormField, of: str) -> Decimal | None:
        child, _, name = of.partition(".")
        if child not in self._lines:
            given = self._values.get(field.name)
            return None if given is None else exact(given)
        total = _ZERO
        for line in self._lines[child]:
            amount = line.get(name)
            if amount is not None:
                total = _WIDE.add(total, exact(amount))
        return rounded(total, field, _WIDE)

    def _product(self, field: FormField, factors: Sequence[str]) -> Decimal | None:
        product = _ONE
        for factor in map(self.value, factors):
            if factor is None:
                return None
            product = _WIDE.multiply(product, factor)
        return rounded(product, field, _WIDE)
