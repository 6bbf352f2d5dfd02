"""Command handlers: found by dotted path, looked over once at start; and what they write with.

A handler says what a form cannot. It reads and checks in ``prepare``, writes in ``execute``, and leaves numbers, tenant
columns, makers, totals and stock to the same functions the forms use::

    class ReportDamage:
        class Input(BaseModel):
            model_config = ConfigDict(extra="forbid")
            product: str
            warehouse: str
            quantity: exact_decimal(3)

        def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
            if data.quantity <= 0:
                raise rule("数量须大于0", "the quantity must be above 0")
            return CommandPlan(payload=data.model_dump(mode="json"), work=data)

        def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
            data: ReportDamage.Input = plan.work
            write = writing(context)
            outbound = context.tables.form("stock_outbound")
            move_stock(write, outbound, [Move(data.product, data.warehouse, -data.quantity)])  # refuses below zero
            made = create_record(write, context.form, {"product": data.product, "quantity": str(data.quantity)})
            return Outcome(made.key, {"zh": f"已报损 {made.number}", "en": f"Damage {made.number} reported"})

and in ``forms.yaml``, under ``commands``: ``{command_type: erp.stock.reportDamage, form: stock_adjustment, label: …,
handler: "mycompany.erp_handlers:ReportDamage"}``.

A handler may have ``execute_all`` besides, the set-based form of ``execute``: operations of one tenant that come
together then share their statements (a counter moved once, one INSERT for all)::

        def execute_all(self, planned: Sequence[tuple[CommandContext, CommandPlan]]) -> list[Outcome]:
            ...  # an outcome for each, in order; raise, and they are executed one by one instead

``command.SetHandler`` says what it may rely on, and what not. ``create_records(form, [New(writing(context), payload),
…])`` is ``create_record`` of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from pydantic import BaseModel

from staging.contracts.error import ErrorCode
from staging.contracts.form import CommandPolicy
from staging.domain.errors import Refused
from workers.erp.command import CommandContext, CommandHandler, CommandPlan, SetHandler
from workers.erp.sql.context import WriteContext
from workers.erp.sql.record_write import (
    Created,
    Links,
    New,
    create_record,
    create_records,
    delete_record,
    update_record,
)
from workers.erp.sql.state_write import guarded_update, set_state, stamped
from workers.erp.sql.stock import Level, Move, look_at_stock, move_stock

__all__ = [
    "CommandContext",
    "CommandHandler",
    "CommandPlan",
    "Created",
    "HandlerInvalid",
    "HandlerRegistry",
    "Level",
    "Links",
    "Move",
    "New",
    "Registered",
    "SetHandler",
    "create_record",
    "create_records",
    "delete_record",
    "guarded_update",
    "look_at_stock",
    "move_stock",
    "set_state",
    "stamped",
    "update_record",
    "writing",
]


class HandlerInvalid(ValueError):
    """A handler named in the catalogue cannot be used; says which and why. Found at start, not at the first call."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A command of the catalogue and the handler that serves it."""

    policy: CommandPolicy
    handler: CommandHandler

    @property
    def together(self) -> SetHandler | None:
        """The handler, if it executes several at once."""
        return cast("SetHandler", self.handler) if hasattr(self.handler, "execute_all") else None


class HandlerRegistry:
    """The handlers of a catalogue's ``commands``, by command type. Raises ``HandlerInvalid`` for one it cannot use."""

    def __init__(self, commands: Iterable[CommandPolicy]) -> None:
        self._commands: Mapping[str, Registered] = {
            policy.command_type: Registered(policy, load_handler(policy.handler)) for policy in commands
        }

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._commands.values())

    def find(self, command_type: str) -> Registered | None:
        """The command, or None where the type is no registered command (a form's own operation, perhaps)."""
        return self._commands.get(command_type)

    def get(self, command_type: str) -> Registered:
        """The command, or ``form_not_found``."""
        found = self.find(command_type)
        if found is None:
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": command_type})
        return found


def load_handler(path: str) -> CommandHandler:
    """Import ``package.module:Name`` and make one of it. Raises ``HandlerInvalid``."""
    made = made_by(path, models=("Input",), methods=("prepare", "execute"))
    if not callable(getattr(made, "execute_all", made.execute)):
        raise HandlerInvalid(f"handler {path!r}: execute_all is no method")
    return cast("CommandHandler", made)


def made_by(path: str, *, models: Iterable[str], methods: Iterable[str]) -> Any:
    """An instance of the class ``package.module:Name`` that has these pydantic models and methods.

    Raises ``HandlerInvalid``.
    """
    module_name, _, name = path.partition(":")
    try:
        made = getattr(import_module(module_name), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise HandlerInvalid(f"handler {path!r} (package.module:Class) cannot be made: {error}") from error
    for wanted in models:
        model = getattr(made, wanted, None)
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise HandlerInvalid(f"handler {path!r} has no pydantic model named {wanted}")
    for method in methods:
        if not callable(getattr(made, method, None)):
            raise HandlerInvalid(f"handler {path!r} has no method {method}")
    return made


def writing(context: CommandContext) -> WriteContext:
    """What the writing functions need, from a handler's context at execution."""
    return WriteContext(context.connection, context.tables, context.actor, context.now, context.today)
