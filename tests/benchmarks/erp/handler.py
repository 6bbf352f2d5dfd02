"""The purchase order as a command handler: our SQL body on the open transaction's cursor."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from staging.domain.ports import Outcome
from tests.benchmarks.reference.body import STATEMENTS, business, play
from workers.erp.command import CommandContext, CommandPlan


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    product: str
    quantity: str
    price: str
    amount: str


class PlaceOrder:
    """Handler of ``erp.po.place``."""

    class Input(BaseModel):
        model_config = ConfigDict(extra="forbid")
        supplier: str
        memo: str
        total: str
        lines: list[Line]

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        return CommandPlan(payload=data.model_dump())

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        name = context.connection.dialect.name
        sql = STATEMENTS["mariadb" if name in ("mysql", "mariadb") else name]
        tenant = context.actor.tenant
        cursor: Any = context.connection.connection.cursor()
        try:
            work = business(sql, tenant.brands_id, tenant.subsidiary_id, context.actor.user_id, plan.payload)
            key, number = play(cursor, work, returning=sql.returning)
        finally:
            cursor.close()
        return placed(key, number)


def placed(key: str, number: str) -> Outcome:
    return Outcome(
        key, {"zh": f"已下单 {number}", "en": f"Placed {number}"}, {"billId": key, "number": number}
    )
