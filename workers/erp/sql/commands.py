"""Runs registered commands: typed input, plan, pins, and at execution the handler's change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import Preview
from staging.domain.canonical import fingerprint
from staging.domain.complaints import problems_of
from staging.domain.errors import Refused, invalid
from staging.domain.ports import Outcome
from workers.erp.command import CommandContext, CommandPlan
from workers.erp.handlers import Registered

log = logging.getLogger(__name__)
_A_SET = 2  # whoever comes alone goes through ``execute``


def plan_command(command: Registered, context: CommandContext, payload: Mapping[str, Any]) -> CommandPlan:
    """Read ``payload`` into the handler's input and let it plan. Raises ``ValidationFailed`` with every bad field."""
    return command.handler.prepare(context, read_input(command.handler.Input, payload))


def read_input(model: type[BaseModel], payload: Mapping[str, Any], below: str = "") -> BaseModel:
    """``payload`` as an instance of ``model``; its complaints as ours, with paths ``below`` a name if there is one."""
    try:
        return model.model_validate(dict(payload))
    except ValidationError as error:
        raise invalid(problems_of(error.errors(include_url=False), below)) from None


class Waiting:
    """Planned commands of one type, one tenant and one transaction that are to be executed together."""

    def __init__(self, command: Registered) -> None:
        self._command = command
        self._planned: list[tuple[CommandContext, CommandPlan]] = []
        self._touched: set[tuple[str, str]] = set()

    def takes(self, plan: CommandPlan) -> bool:
        """False where ``plan`` has to be made anew after ``execute``: one that is waiting has its target, or its pins,
        and it has not seen what that one changes."""
        return not self._planned or not (self._touched & _touched(plan))

    def add(self, context: CommandContext, plan: CommandPlan) -> None:
        self._planned.append((context, plan))
        self._touched |= _touched(plan)

    def execute(self) -> list[Outcome]:
        """Execute what is waiting. Raises what the handler raises, ``LookupError`` unless each has an outcome."""
        planned, self._planned, self._touched = self._planned, [], set()
        together = self._command.together
        if together is None or len(planned) < _A_SET:
            return [self._command.handler.execute(context, plan) for context, plan in planned]
        outcomes = list(together.execute_all(planned))
        if len(outcomes) != len(planned):
            command = self._command.policy.command_type
            log.error("%s: execute_all gave %d outcomes for %d plans", command, len(outcomes), len(planned))
            raise LookupError(f"{command}: {len(outcomes)} outcomes for {len(planned)} operations")
        return outcomes


def _touched(plan: CommandPlan) -> set[tuple[str, str]]:
    target = {(plan.target_bill_id, "")} if plan.target_bill_id else set()
    return target | {(plan.target_bill_id, pin) for pin in plan.pins}


def require_same_pins(plan: CommandPlan, seen: Mapping[str, Any], record: str) -> None:
    """Raise version_conflict with ``[{field, label, seen, now, proposed}]`` unless the plan's pins are as ``seen``."""
    names = [*plan.pins, *(name for name in seen if name not in plan.pins)]
    conflict = [
        {
            "field": name,
            "label": name,
            "seen": seen.get(name),
            "now": plan.pins.get(name),
            "proposed": plan.payload.get(name),
        }
        for name in names
        if fingerprint([seen.get(name)]) != fingerprint([plan.pins.get(name)])
    ]
    if conflict:
        raise Refused(ErrorCode.VERSION_CONFLICT, {"record": record}, conflict=tuple(conflict))


def command_preview(command: Registered, context: CommandContext, plan: CommandPlan) -> Preview:
    """The card of a command."""
    locale = context.actor.locale
    label = command.policy.label.text(locale)
    return Preview(
        title=f"{label} {plan.record_label}".strip(),
        form_id=context.form.id,
        form_label=context.form.label.text(locale),
        op_type=command.policy.command_type.rpartition(".")[2],
        op_label=label,
        record_id=plan.target_bill_id,
        record_label=plan.record_label,
        fields=plan.fields,
        children=plan.children,
        totals=plan.totals,
        warnings=plan.warnings,
    )
