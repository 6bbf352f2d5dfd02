"""From form and operation type, or command type, to what it is: a form's own operation, or a registered command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.form import Approval, Form
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused
from staging.domain.ports import Route
from workers.erp.handlers import HandlerRegistry, Registered
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.completeness import compute_totals
from workers.erp.sql.problems import Problems
from workers.erp.sql.read_payload import PayloadReader
from workers.erp.sql.values import exact

_NEW = (OpType.CREATE, OpType.GENERATE)
_PARTS = 3

ValueOf = Callable[[str], Any]
"""Value of a public field that decides about approval; raises KeyError if it is not known."""


@dataclass(frozen=True, slots=True)
class Target:
    """``op``: a form's own operation; or ``command``: a registered one, whose ``verb`` is what is granted."""

    form: Form
    verb: str
    command_type: str
    op: OpType | None = None
    command: Registered | None = None

    @property
    def own_op(self) -> OpType:
        if self.op is None:
            raise LookupError(f"{self.command_type} is a command, no operation of its form")
        return self.op

    def route(self, value_of: ValueOf) -> Route:
        """The route, approval decided by the values that ``value_of`` knows; strict about those it does not."""
        policy = self.command.policy if self.command else self.form.operations[self.own_op]
        return Route(
            command_type=self.command_type,
            form_id=self.form.id,
            module_id=self.form.module,
            target_table=self.form.table,
            op_type=self.verb,
            auto_execute=policy.execution == "auto",
            requires_approval=needs_approval(policy.approval, value_of),
        )


class Router:
    """Finds the ``Target`` of what a caller, or a row, names."""

    def __init__(self, tables: CatalogueTables, handlers: HandlerRegistry) -> None:
        self._tables, self._handlers = tables, handlers

    def find(self, form_id: str, op_type: str, command_type: str) -> Target:
        """Raises form_not_found for names that lead nowhere or contradict each other, forbidden for an operation type
        without policy (default deny)."""
        if command_type:
            target = self._by_command(command_type)
            if (form_id and form_id != target.form.id) or (op_type and op_type != target.verb):
                raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": command_type})
            return target
        form = self._tables.form(form_id)
        return self._by_command(form.command_type(op_type)) if op_type else self._own(form, op_type)

    def _by_command(self, command_type: str) -> Target:
        command = self._handlers.find(command_type)
        if command:
            form = self._tables.form(command.policy.form)
            return Target(form, command_type.rpartition(".")[2], command_type, command=command)
        parts = command_type.split(".")
        if len(parts) != _PARTS:
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": command_type})
        module, form_id, op_type = parts
        form = self._tables.form(form_id)
        if form.module != module:
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": command_type})
        return self._own(form, op_type)

    @staticmethod
    def _own(form: Form, op_type: str) -> Target:
        op = next((o for o in form.operations if o == op_type), None)
        if op is None:
            zh = f"{form.label.zh}不允许“{op_type[:50]}”操作"
            en = f'{form.label.en} does not allow the operation "{op_type[:50]}"'
            raise Refused(ErrorCode.FORBIDDEN, {"form": form.id, "op": op_type}, text={"zh": zh, "en": en})
        return Target(form, op.value, form.command_type(op), op=op)

    def values_of_payload(self, target: Target, payload: Any) -> ValueOf:
        """What a payload alone tells: its own fields, and for a new record the totals over its lines."""
        if not isinstance(payload, Mapping):
            return _unknown
        if target.command:
            return dict(payload).__getitem__
        if target.op not in _NEW:
            return _unknown  # an existing record's values are not in its payload
        problems = Problems()
        master = self._tables.master(target.form.id)
        root = PayloadReader(target.form, master, problems, trusted=True).create(payload)
        compute_totals(root, problems)
        return _unknown if problems.found else root.new.__getitem__


def needs_approval(approval: Approval | None, value_of: ValueOf) -> bool:
    """True if a second person has to approve. A value that is not known counts as above the limit."""
    if approval is None:
        return False
    if approval.always or approval.field is None or approval.above is None:
        return approval.always
    try:
        value = value_of(approval.field)
        return value is None or exact(value) > approval.above
    except (KeyError, TypeError, ArithmeticError):
        return True


def _unknown(name: str) -> Any:
    raise KeyError(name)
