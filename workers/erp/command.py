"""What a form cannot say: a command with rules of its own, in Python.

A handler is registered under its command type by the catalogue's ``commands`` entry (``handler``: dotted path of a
class, ``package.module:Name``). The adapter has already checked form, policy and permission when a handler is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel
from sqlalchemy import Connection

from staging.contracts.form import CommandPolicy, Form
from staging.contracts.preparation import ChildSection, FieldChange, PreviewWarning
from staging.domain.identity import Actor
from staging.domain.ports import Outcome
from workers.erp.sql.catalogue_tables import CatalogueTables


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a handler works with. ``record``: id or document number as given ("" if none).

    ``lock``: True at execution, inside the transaction: lock the rows you read (``for_update``), in a fixed order.
    ``connection`` is read-only while preparing. ``now`` is UTC, ``today`` the tenant's local date. Every statement
    names the actor's tenant (``tables.master(…).of_tenant(actor.tenant)``).
    """

    connection: Connection
    actor: Actor
    tables: CatalogueTables
    form: Form
    policy: CommandPolicy
    record: str
    lock: bool
    now: datetime
    today: date
    op_id: str = ""
    allow_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """What a handler would do, worked out without doing it.

    ``payload``: the normalized input, JSON-ready, valid as input again. ``pins``: JSON-ready values, as seen, of what
    the command reads or writes, by a name a person understands (compared at execution: any difference is
    version_conflict). ``fields`` … ``warnings`` are the preview. ``work`` is the handler's own: never stored, made anew
    at execution.
    """

    payload: dict[str, Any]
    target_bill_id: str = ""
    record_label: str = ""
    pins: dict[str, Any] = field(default_factory=dict)
    fields: list[FieldChange] = field(default_factory=list)
    children: list[ChildSection] = field(default_factory=list)
    totals: list[FieldChange] = field(default_factory=list)
    warnings: list[PreviewWarning] = field(default_factory=list)
    work: Any = None


class CommandHandler(Protocol):
    """``prepare`` runs for the card and again, with ``lock``, at execution; then ``execute`` writes.

    A handler may also have ``execute_all``: see ``SetHandler``.
    """

    Input: ClassVar[type[BaseModel]]
    """The typed input, with the payload's names and ``extra="forbid"``; amounts are ``sql.coerce.exact_decimal``."""

    def prepare(self, context: CommandContext, data: Any) -> CommandPlan:
        """Check and resolve ``data`` (an ``Input``); reads only. Raises ``OpstageError`` for what is not allowed."""

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        """Make the change of a plan just prepared with ``lock`` in this transaction. No commit, no DDL."""


class SetHandler(CommandHandler, Protocol):
    """A handler whose operations, where several of one tenant are executed together, share their statements."""

    def execute_all(self, planned: Sequence[tuple[CommandContext, CommandPlan]]) -> Sequence[Outcome]:
        """``execute`` of several at once, as if in this order; an outcome for each, in the same order.

        Each has its own context (actor, ``op_id``, ``record``); connection and tenant are the same. All plans were
        made, with ``lock``, before the first of them is executed: none has seen what another changes. Two on one
        target never come together, nor two without a target that pin the same. What else one means to the next (a
        budget that is enough for one, a record that both read) is for this method to check. Raise for any doubt: all
        is undone then, and they are executed one by one, through ``execute``, which also serves whoever comes alone.
        """
