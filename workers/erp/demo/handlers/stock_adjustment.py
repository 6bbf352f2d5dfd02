"""``erp.stock_adjustment.create``: stock at one place changes by a delta, never below zero nor into what is reserved.

A delta is not spoilt by other movements in between, so the level shown on the card is not pinned: two adjustments
prepared on the same level both happen, unless the second would take more than is free by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from staging.domain.canonical import decimal_text
from staging.domain.ports import Outcome
from workers.erp.demo.handlers.drafting import STOCK_FORM, CommandInput, created, draft, plan_to_create
from workers.erp.demo.handlers.inputs import ShortText
from workers.erp.handlers import (
    CommandContext,
    CommandPlan,
    Move,
    create_record,
    look_at_stock,
    move_stock,
    stamped,
    writing,
)
from workers.erp.sql.change import Node
from workers.erp.sql.coerce import exact_decimal
from workers.erp.sql.problems import Problems


@dataclass(frozen=True, slots=True)
class _Work:
    root: Node
    move: Move


class AdjustStock:
    """Handler of ``erp.stock_adjustment.create``. Its document is examined from the start."""

    class Input(CommandInput):
        """``delta``: what is added (or, negative, taken). ``reason``: count_gain, count_loss, damage or other."""

        product: str
        delta: exact_decimal(3)  # type: ignore[valid-type]
        reason: str
        warehouse: str | None = None
        memo: ShortText | None = None

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        root = draft(context, data.given())
        move = Move(root.new["product"], root.new["warehouse"], quantity=Decimal(root.new["delta"]))
        if not move.quantity:
            problems = Problems()
            problems.bad("delta", "调整数量不能为0", "the change must not be 0")
            problems.raise_any()
        if not context.lock:  # at execution the level is what is found under lock
            looked = look_at_stock(writing(context), context.tables.form(STOCK_FORM), [move])
            before, after = looked[move.product, move.warehouse]
            root.new |= {"before": decimal_text(before.quantity), "after": decimal_text(after.quantity)}
        return plan_to_create(context, root, pins={}, work=_Work(root, move))

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        work: _Work = plan.work
        write = writing(context)
        moved = move_stock(write, context.tables.form(STOCK_FORM), [work.move])
        before, after = moved[work.move.product, work.move.warehouse]
        levels = {"before": decimal_text(before.quantity), "after": decimal_text(after.quantity)}
        examined = stamped(write, context.form.states.examined, on=True)
        made = create_record(write, context.form, work.root.payload() | levels, columns=examined)
        return created(context, made, zh="已创建库存调整单", en="Stock adjustment created:", **levels)
