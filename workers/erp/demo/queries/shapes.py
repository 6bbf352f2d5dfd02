"""Types of the demo's filters and rows."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from staging.contracts.error import Wire
from staging.domain.canonical import decimal_text
from staging.domain.complaints import bad_value
from workers.erp.demo.handlers.inputs import ShortText
from workers.erp.query import says
from workers.erp.sql.coerce import date_value, decimal_schema, read_by

_SUM_PRECISION = 38
_MOST_NAMES = 50


def _exact(decimals: int) -> Any:
    """An amount of a row: a Decimal, written as exact text."""
    return Annotated[
        Decimal,
        PlainSerializer(decimal_text, return_type=str),
        WithJsonSchema(decimal_schema(decimals, _SUM_PRECISION)),
    ]


Amount, Price, Quantity, Factor = _exact(2), _exact(4), _exact(3), _exact(4)

_Listed = BeforeValidator(lambda raw: raw if isinstance(raw, list) else [raw])
"""One value stands for a list of one."""

Names = Annotated[list[ShortText], _Listed, Field(min_length=1, max_length=_MOST_NAMES)]
"""Records by id, document number or exact name; any of them."""

Day = Annotated[
    date,
    read_by(lambda raw: date.fromisoformat(date_value(raw))),
    WithJsonSchema({"type": "string", "format": "date"}),
]

Status = Literal["draft", "examined", "cancelled"]
Statuses = Annotated[list[Status], _Listed, Field(min_length=1, max_length=3)]
STATUS_TEXTS = {
    "draft": {"zh": "未审核", "en": "Not examined"},
    "examined": {"zh": "已审核", "en": "Examined"},
    "cancelled": {"zh": "已取消", "en": "Cancelled"},
}
BY_NAME = ("填 id、编号或完整一致的名称", "by id, number or exact name")
ANY_NAME = ("填 id、编号或完整一致的名称；多个为任一", "by id, number or exact name; of several any one")


class DayRange(Wire):
    """Both ends included; either may be open."""

    from_: Annotated[Day | None, says("从（含）", "From, included")] = Field(default=None, alias="from")
    to: Annotated[Day | None, says("到（含）", "To, included")] = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ and self.to and self.from_ > self.to:
            reason = {"zh": "开始日期晚于结束日期", "en": "it begins after it ends"}
            raise bad_value(reason)
        return self
