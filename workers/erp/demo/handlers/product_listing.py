"""``erp.product_listing.on`` and ``.off``: a product goes on sale in the shop, or is taken off.

The listing is the operation's record (number or id), or is found by ``product``. Both are refused where nothing would
change, so that of two people who press the button at once one is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import select

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused, rule
from staging.domain.ports import Outcome
from workers.erp.demo.handlers.catalogue import read_products
from workers.erp.demo.handlers.drafting import VALID, CommandInput, reference_key, texts_of
from workers.erp.handlers import CommandContext, CommandPlan, guarded_update, writing
from workers.erp.sql.change import Node
from workers.erp.sql.preview import field_change
from workers.erp.sql.records import Record, find_record
from workers.erp.sql.states import check


@dataclass(frozen=True, slots=True)
class _Work:
    key: str
    label: str


class _SetListed:
    """What both directions share. ``listed``: what the listing will be; ``by``, ``at``: fields of who and when."""

    listed: ClassVar[bool]
    by: ClassVar[str]
    at: ClassVar[str]

    class Input(CommandInput):
        product: str | None = None

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        record = self._find(context, data.product)
        form = context.form
        check(form, record.flags, VALID)
        if record.values["listed"] == self.listed:
            raise _no_change(self.listed)
        self._check_product(context, record.values["product"])
        master = context.tables.master(form.id)
        root = Node(master, form, "change", key=record.key, old=record.values)
        root.new = {"listed": self.listed}
        texts = texts_of(context, root)
        label = texts.title(form, record.key, record.values)
        field = master.fields["listed"]
        return CommandPlan(
            payload={},
            target_bill_id=record.key,
            record_label=label,
            pins={"@invalid": False, "listed": record.values["listed"], "product": record.values["product"]},
            fields=[field_change(field, record.values["listed"], self.listed, texts)],
            work=_Work(record.key, label),
        )

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        work: _Work = plan.work
        write, form = writing(context), context.form
        master = context.tables.master(form.id)
        column = {name: field.column for name, field in master.fields.items()}
        values = {
            column["listed"]: int(self.listed),
            column[self.by]: context.actor.user_id,
            column[self.at]: context.now,
        }
        guarded_update(write, form, master, work.key, VALID, values)
        zh, en = ("已上架", "on sale") if self.listed else ("已下架", "taken off sale")
        message = {"zh": f"{zh}：{work.label}", "en": f"{work.label} is {en}"}
        return Outcome(work.key, message, {"formId": form.id, "billId": work.key, "listed": self.listed})

    def _find(self, context: CommandContext, product: str | None) -> Record:
        connection, tables, tenant = context.connection, context.tables, context.actor.tenant
        if context.record:
            found = find_record(connection, tables, tenant, context.form, context.record, lock=context.lock)
            if product is None or reference_key(context, "product", product) == found.values["product"]:
                return found
            raise rule("该上架记录不是这个产品的", "This listing is of another product")
        master = tables.master(context.form.id)
        key = reference_key(context, "product", product)
        listing = select(master.key).where(master.column("product") == key, *master.of_tenant(tenant))
        return find_record(
            connection,
            tables,
            tenant,
            context.form,
            connection.execute(listing).scalar() or "",
            lock=context.lock,
        )

    def _check_product(self, context: CommandContext, key: str) -> None:
        """Only a valid product with a price goes on sale; taking it off is always right."""
        if not self.listed:
            return
        product = read_products(context, {key}).get(key)
        if product is None or not product.valid:
            raise rule("产品已作废，不能上架", "The product is invalid and cannot go on sale")
        if not product.price:
            raise rule("产品没有单价，不能上架", "The product has no price and cannot go on sale")


class PutOnSale(_SetListed):
    """Handler of ``erp.product_listing.on``."""

    listed = True
    by, at = "listedBy", "listedAt"


class TakeOffSale(_SetListed):
    """Handler of ``erp.product_listing.off``."""

    listed = False
    by, at = "unlistedBy", "unlistedAt"


def _no_change(listed: bool) -> Refused:
    zh, en = ("该商品已上架", "It is on sale already") if listed else ("该商品未上架", "It is not on sale")
    return Refused(ErrorCode.STATE_CONFLICT, {"listed": listed}, text={"zh": zh, "en": en})
