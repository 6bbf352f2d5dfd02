"""``erp.digital_human_project.setTitle``: a new title for a project, by the rules of ``title``."""

from __future__ import annotations

from dataclasses import dataclass

from staging.domain.errors import rule
from staging.domain.ports import Outcome
from workers.erp.demo.handlers.drafting import VALID, CommandInput, texts_of
from workers.erp.demo.handlers.title import Title
from workers.erp.handlers import CommandContext, CommandPlan, guarded_update, writing
from workers.erp.sql.change import Node
from workers.erp.sql.preview import field_change
from workers.erp.sql.records import find_record
from workers.erp.sql.states import check


@dataclass(frozen=True, slots=True)
class _Work:
    key: str
    number: str
    title: str


class SetProjectTitle:
    """Handler of ``erp.digital_human_project.setTitle``; the project is the operation's record."""

    class Input(CommandInput):
        title: Title

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        form, master = context.form, context.tables.master(context.form.id)
        record = find_record(
            context.connection, context.tables, context.actor.tenant, form, context.record, lock=context.lock
        )
        check(form, record.flags, VALID)
        before = record.values["title"]
        if before == data.title:
            raise rule("标题没有变化", "The title would not change")
        root = Node(master, form, "change", key=record.key, old=record.values)
        root.new = {"title": data.title}
        texts = texts_of(context, root)
        return CommandPlan(
            payload=data.given(),
            target_bill_id=record.key,
            record_label=texts.title(form, record.key, record.values),
            pins={"@invalid": False, "title": before},
            fields=[field_change(master.fields["title"], before, data.title, texts)],
            work=_Work(record.key, record.values["number"], data.title),
        )

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        work: _Work = plan.work
        write, form = writing(context), context.form
        master = context.tables.master(form.id)
        values = {master.fields["title"].column: work.title, **write.made_by(form.modified)}
        guarded_update(write, form, master, work.key, VALID, values)
        message = {
            "zh": f"项目 {work.number} 的标题已改为“{work.title}”",
            "en": f"Project {work.number} is now “{work.title}”",
        }
        return Outcome(work.key, message, {"formId": form.id, "billId": work.key, "title": work.title})
