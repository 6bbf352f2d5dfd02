"""``erp.sales_order.cancel``: once, only while nothing of it is on a valid outbound; what it reserved is free again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from staging.contracts.preparation import OpType
from staging.domain.ports import Outcome
from workers.erp.demo.handlers.drafting import STOCK_FORM, VALID, CommandInput, texts_of
from workers.erp.demo.handlers.inputs import ShortText
from workers.erp.handlers import (
    CommandContext,
    CommandPlan,
    Move,
    guarded_update,
    move_stock,
    stamped,
    writing,
)
from workers.erp.sql.change import Node
from workers.erp.sql.pins import pins_of
from workers.erp.sql.preview import preview_of
from workers.erp.sql.read_payload import stored_node
from workers.erp.sql.records import find_record
from workers.erp.sql.referenced_by import check_not_referenced
from workers.erp.sql.states import check
from workers.erp.sql.tree import load_lines

_READ = {"lines": ["product", "warehouse", "quantity", "outQuantity"]}


@dataclass(frozen=True, slots=True)
class _Work:
    key: str
    number: str
    reason: str | None
    released: list[Move]


class CancelSalesOrder:
    """Handler of ``erp.sales_order.cancel``; the order is the operation's record."""

    class Input(CommandInput):
        reason: ShortText | None = None

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        connection, tables, tenant, form = (
            context.connection,
            context.tables,
            context.actor.tenant,
            context.form,
        )
        record = find_record(connection, tables, tenant, form, context.record, lock=context.lock)
        check(form, record.flags, VALID)
        check_not_referenced(connection, tables, tenant, form, record.key)
        table = tables.master(form.id).children["lines"]
        lines = load_lines(connection, table, tenant, [record.key], lock=context.lock)
        root = Node(tables.master(form.id), form, "change", key=record.key, old=record.values)
        root.new = {"cancelReason": data.reason} if data.reason else {}
        root.children["lines"] = [stored_node(table, root.child("lines"), line, root) for line in lines]
        pins = pins_of(form, root, record.flags, read=_READ)
        texts = texts_of(context, root)
        shown = preview_of(form, OpType.INVALID, root, pins, texts, [], read=_READ)
        values = [line.values for line in lines]
        return CommandPlan(
            payload=data.given(),
            target_bill_id=record.key,
            record_label=shown.record_label,
            # Examined or not makes no difference to a cancellation.
            pins={name: value for name, value in pins.values().items() if name != "@examined"},
            fields=shown.fields,
            children=shown.children,
            work=_Work(record.key, record.values["billNo"], data.reason, [_release(line) for line in values]),
        )

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        work: _Work = plan.work
        write, form = writing(context), context.form
        master = context.tables.master(form.id)
        values = stamped(write, form.states.invalid, on=True)
        values[master.fields["cancelReason"].column] = work.reason
        guarded_update(write, form, master, work.key, VALID, values)
        move_stock(write, context.tables.form(STOCK_FORM), work.released)
        return Outcome(
            work.key,
            {"zh": f"已取消销售订单 {work.number}", "en": f"Sales order {work.number} cancelled"},
            {"formId": form.id, "billId": work.key, "number": work.number},
        )


def _release(line: dict[str, Any]) -> Move:
    return Move(line["product"], line["warehouse"], reserved=line["outQuantity"] - line["quantity"])
