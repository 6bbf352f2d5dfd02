"""One value of a field, from its JSON-ready form to what SQL is given and back.

JSON-ready: decimals as exact strings with the field's decimals, dates ``YYYY-MM-DD``, times UTC ISO 8601 with ``Z``,
booleans true/false. In SQL booleans and state flags are 1/0, as the ERPs we serve keep them.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Date, String, Text
from sqlalchemy.types import TypeEngine

from staging.contracts.form import FieldType, FormField
from staging.domain.canonical import decimal_text, utc_text
from staging.storage.dialect import ExactDecimal, Flag, IdString, UtcDateTime

_KEY = IdString(64)


def sql_type(field: FormField) -> TypeEngine[Any]:
    """The column type through which values of ``field`` are bound and read."""
    match field.type:
        case FieldType.DECIMAL:
            return ExactDecimal(field.precision, field.decimals or 0)
        case FieldType.INTEGER:
            return BigInteger()
        case FieldType.BOOLEAN:
            return Flag()
        case FieldType.DATE:
            return Date()
        case FieldType.DATETIME:
            return UtcDateTime()
        case FieldType.REFERENCE:
            return _KEY
        case FieldType.CHOICE:
            return BigInteger() if all(isinstance(c.value, int) for c in field.choices) else String()
        case _:
            return Text() if field.type is FieldType.TEXT else String()


def to_sql(field: FormField, value: Any) -> Any:
    """What to bind for a normalized ``value``. ValueError/TypeError for one that the field's type cannot hold."""
    if value is None:
        return None
    match field.type:
        case FieldType.DECIMAL:
            return exact(value)
        case FieldType.INTEGER:
            return _whole(value)
        case FieldType.BOOLEAN:
            return int(bool(value))
        case FieldType.DATE:
            return value if isinstance(value, date) else date.fromisoformat(value)
        case FieldType.DATETIME:
            return value if isinstance(value, datetime) else datetime.fromisoformat(value)
        case FieldType.CHOICE:
            return value if isinstance(value, str) else _whole(value)
        case _:
            return str(value)


def to_json(field: FormField, value: Any) -> Any:
    """What a value read from SQL is on the wire."""
    if value is None:
        return None
    match field.type:
        case FieldType.DECIMAL:
            return decimal_text(rounded(exact(value), field))
        case FieldType.BOOLEAN:
            return bool(value)
        case FieldType.DATE:
            return value.isoformat() if isinstance(value, date) else str(value)
        case FieldType.DATETIME:
            return utc_text(value)
        case FieldType.INTEGER:
            return int(value)
        case _:
            return value


def exact(value: Any) -> Decimal:
    """Decimal of a Decimal, int or exact string; TypeError for anything else, above all a float."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"{value!r} is not an exact decimal")
    return Decimal(value)


def rounded(value: Decimal, field: FormField, context: Context | None = None) -> Decimal:
    """``value`` rounded half-up to the field's decimals. ``context``: for what may have more than 28 digits."""
    return value.quantize(unit(field.decimals or 0), ROUND_HALF_UP, context)


@cache
def unit(decimals: int) -> Decimal:
    """One of the last decimal: what to quantize by."""
    return Decimal(1).scaleb(-decimals)


def _whole(value: Any) -> int:
    number = exact(value)
    if number != number.to_integral_value():
        raise ValueError(f"{value} is not a whole number")
    return int(number)
