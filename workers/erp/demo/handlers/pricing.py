"""What a sales line costs: the product's list price now, and the factor of the highest quantity step it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

_PRICE_UNIT = Decimal("0.0001")
_AMOUNT_UNIT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Step:
    """From ``minimum`` pieces on, ``factor`` times the list price."""

    minimum: Decimal
    factor: Decimal


@dataclass(frozen=True, slots=True)
class Priced:
    """``price`` per piece with 4 decimals, ``amount`` with 2, both rounded half-up."""

    list_price: Decimal
    factor: Decimal
    price: Decimal
    amount: Decimal


def factor_for(steps: Iterable[Step], quantity: Decimal) -> Decimal:
    """The factor of the highest step that ``quantity`` reaches; 1 below all steps."""
    reached = [step for step in steps if step.minimum <= quantity]
    return max(reached, key=lambda step: step.minimum).factor if reached else Decimal(1)


def priced(list_price: Decimal, steps: Sequence[Step], quantity: Decimal, ordered: Decimal) -> Priced:
    """Price ``quantity`` pieces; ``ordered`` is what the whole order takes of the product and decides the step."""
    factor = factor_for(steps, ordered)
    price = (list_price * factor).quantize(_PRICE_UNIT, ROUND_HALF_UP)
    return Priced(list_price, factor, price, (price * quantity).quantize(_AMOUNT_UNIT, ROUND_HALF_UP))
