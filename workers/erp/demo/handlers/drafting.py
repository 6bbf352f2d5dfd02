"""What the demo's handlers share: a new record worked out as its form would, and what a person is shown of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from staging.contracts.preparation import OpType
from staging.domain.ports import Outcome
from workers.erp.handlers import CommandContext, CommandPlan, Created
from workers.erp.sql.change import Node
from workers.erp.sql.pins import Pins
from workers.erp.sql.preview import preview_of
from workers.erp.sql.problems import Problems
from workers.erp.sql.read_payload import PayloadReader
from workers.erp.sql.references import References, wanted_references
from workers.erp.sql.states import Required
from workers.erp.sql.texts import Texts
from workers.erp.sql.work_out import Ask, work_out

STOCK_FORM = "stock_outbound"
"""The form whose stock effect knows the stock table and its reservations."""
VALID = Required(invalid=False)
"""What a record must be that a command changes."""


class CommandInput(BaseModel):
    """Base of the demo's inputs: camelCase names, nothing unknown, immutable."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    def given(self) -> dict[str, Any]:
        """What was filled in, JSON-ready, by public name."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def draft(context: CommandContext, payload: Mapping[str, Any]) -> Node:
    """A new record of the context's form: coerced, references resolved, defaults filled, duplicates looked for.

    Raises ``ValidationFailed`` with every bad field, possible_duplicate.
    """
    ask = Ask(
        actor=context.actor,
        form=context.form,
        op=OpType.CREATE,
        record=context.record,
        payload=payload,
        source_ref=None,
        now=context.now,
        today=context.today,
        allow_duplicate=context.allow_duplicate,
        lock=context.lock,
    )
    return work_out(context.connection, context.tables, ask).root


def reference_key(context: CommandContext, field: str, given: str | None) -> str:
    """The key that ``given`` means in the form's reference ``field``. Raises ``ValidationFailed``."""
    problems = Problems()
    master = context.tables.master(context.form.id)
    node = PayloadReader(context.form, master, problems, trusted=False).create({field: given})
    references = References(
        context.connection, context.tables, context.actor.tenant, problems, ids_only=False
    )
    references.resolve(wanted_references([node]))
    if node.value(field) is None:
        problems.required(field, master.fields[field].label.model_dump())
    problems.raise_any()
    return str(node.new[field])


def input_of(root: Node) -> dict[str, Any]:
    """The draft as input again: what a caller may say, with keys instead of names and every default filled in."""
    said = {name: value for name, value in root.new.items() if root.fields[name].accepts_input}
    return said | {name: [input_of(line) for line in lines] for name, lines in root.children.items()}


def plan_to_create(context: CommandContext, root: Node, *, pins: Mapping[str, Any], work: Any) -> CommandPlan:
    """The plan, with the preview of the new record ``root``."""
    texts = texts_of(context, root)
    shown = preview_of(context.form, OpType.CREATE, root, Pins(), texts, [], read={})
    return CommandPlan(
        payload=input_of(root),
        pins=dict(pins),
        fields=shown.fields,
        children=shown.children,
        totals=shown.totals,
        work=work,
    )


def created(context: CommandContext, made: Created, *, zh: str, en: str, **facts: Any) -> Outcome:
    """The outcome of a new record; ``zh`` and ``en`` go before its number."""
    result = {"formId": context.form.id, "billId": made.key, "number": made.number, **facts}
    return Outcome(made.key, {"zh": f"{zh} {made.number}", "en": f"{en} {made.number}"}, result)


def texts_of(context: CommandContext, root: Node) -> Texts:
    """Loaded texts for everything ``root`` names, its own title included."""
    texts = Texts(context.connection, context.tables, context.actor.tenant, context.actor.locale)
    texts.want_nodes(root.walk())
    texts.want_title(context.form, root.values())
    texts.load()
    return texts
