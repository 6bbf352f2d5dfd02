"""The change that takes an executed one back. Pure: what an operation's row and its form say, no I/O.

The inverse is prepared like any other change: validated, shown old → new as things are by then, and confirmed by a
person. What has no inverse is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from staging.contracts.form import Catalogue, Child, Form, FormField
from staging.contracts.preparation import ChildLine, ChildSection, FieldChange, OpType, PrepareItem, Preview
from staging.domain.errors import Refused, rule
from staging.domain.operation import Operation

_MIRROR = {
    OpType.EXAMINE: OpType.CANCEL_EXAMINE,
    OpType.CANCEL_EXAMINE: OpType.EXAMINE,
    OpType.INVALID: OpType.CANCEL_INVALID,
    OpType.CANCEL_INVALID: OpType.INVALID,
}
# A line of a record as it is now: ``{"id": …, "values": {…}, "children": {child: [lines]}}``.
Current = Mapping[str, Any]


def inverse_of(operation: Operation, preview: Preview, catalogue: Catalogue, current: Current) -> PrepareItem:
    """``preview``: what was confirmed; ``current``: the record now (an update that added lines needs it, else {}).

    Raises business_rule where there is no inverse.
    """
    form = next((f for f in catalogue.forms if f.id == operation.form_id), None)
    command = any(c.command_type == operation.command_type for c in catalogue.commands)
    if form is None or command or operation.op_type not in set(OpType):
        raise rule(
            "该命令没有可自动推出的反向操作，请用业务上的取消或更正命令",
            "This command has no inverse that could be derived; use the business's own way to cancel or correct it",
        )
    op = OpType(operation.op_type)
    record = operation.result_bill_id or operation.target_bill_id
    if op is OpType.UPDATE:
        return _item(form, OpType.UPDATE, record, _old_values(form, preview, current))
    if op is OpType.DELETE:
        if form.operations.get(op) is not None and form.operations[op].physical:
            raise rule(
                "单据已被物理删除，无法恢复", "The record was physically deleted and cannot be brought back"
            )
        return _item(form, OpType.CANCEL_INVALID, record)
    if op in _MIRROR:
        return _item(form, _MIRROR[op], record)
    return _item(form, _removal(form), record)


def needs_current(operation: Operation, preview: Preview) -> bool:
    """True where ``inverse_of`` has to know the record as it is now: lines were added to it."""
    return operation.op_type == OpType.UPDATE and any(_adds(preview.children))


def _adds(sections: Iterable[ChildSection]) -> Iterable[bool]:
    for section in sections:
        for line in section.lines:
            yield line.action == "add" or any(_adds(line.children))


def _item(form: Form, op: OpType, record: str, payload: Mapping[str, Any] | None = None) -> PrepareItem:
    if op not in form.operations:
        raise rule(
            f"表单未开放反向操作“{op.value}”",
            f'The form does not offer "{op.value}", which would take this back',
        )
    return PrepareItem(form_id=form.id, op_type=op.value, record=record, payload=dict(payload or {}))


def _removal(form: Form) -> OpType:
    """How a record that was made is taken back: made invalid, else deleted."""
    return OpType.INVALID if OpType.INVALID in form.operations else OpType.DELETE


def _old_values(form: Form, preview: Preview, current: Current) -> dict[str, Any]:
    payload = _restored(preview.fields, form.fields)
    payload |= _sections(form.children, preview.children, current.get("children", {}))
    if not payload:
        raise rule("该修改没有可恢复的内容", "This update changed nothing that could be set back")
    return payload


def _restored(changes: Iterable[FieldChange], fields: Sequence[FormField]) -> dict[str, Any]:
    """Field → the value before, of fields that a payload may set."""
    settable = {f.name for f in fields if f.accepts_input and f.on_update}
    return {c.field: c.old for c in changes if c.field in settable and c.old != c.new}


def _sections(
    children: Sequence[Child], sections: Iterable[ChildSection], current: Mapping[str, Sequence[Current]]
) -> dict[str, Any]:
    known = {child.name: child for child in children}
    payload: dict[str, Any] = {}
    for section in sections:
        child = known.get(section.child)
        if child is None:
            raise _gone(section.label)
        now = current.get(section.child, ())
        added = [line for line in section.lines if line.action == "add"]
        lines = [_line(child, line, now) for line in section.lines if line.action in ("change", "remove")]
        lines += [{"id": key, "remove": True} for key in _keys_of(added, child, now, section.label)]
        lines = [line for line in lines if line.keys() != {"id"}]
        if lines:
            payload[section.child] = lines
    return payload


def _line(child: Child, line: ChildLine, current: Sequence[Current]) -> dict[str, Any]:
    if line.action == "remove":
        return _again(child, line)
    now: Current = next((row for row in current if row["id"] == line.line_id), {})
    changed = _restored(line.fields, child.fields)
    return {
        "id": line.line_id,
        **changed,
        **_sections(child.children, line.children, now.get("children", {})),
    }


def _again(child: Child, line: ChildLine) -> dict[str, Any]:
    """A removed line with all that was below it, as a new one."""
    settable = {f.name for f in child.fields if f.accepts_input}
    made: dict[str, Any] = {c.field: c.old for c in line.fields if c.field in settable and c.old is not None}
    for section in line.children:
        below = next((c for c in child.children if c.name == section.child), None)
        if below is None:
            raise _gone(section.label)
        made[section.child] = [_again(below, one) for one in section.lines]
    return made


def _keys_of(added: Sequence[ChildLine], child: Child, current: Sequence[Current], label: str) -> list[str]:
    """The keys the added lines got: found by their values, which must tell them from every other line."""
    settable = {f.name for f in child.fields if f.accepts_input}
    keys: list[str] = []
    for line in added:
        wanted = {c.field: c.new for c in line.fields if c.field in settable}
        alike = [row["id"] for row in current if all(row["values"].get(k) == v for k, v in wanted.items())]
        twins = sum(
            {c.field: c.new for c in other.fields if c.field in settable} == wanted for other in added
        )
        if len(alike) != twins:
            raise rule(
                f"当时新增的“{label}”行已无法唯一识别，请另行修改单据",
                f'The lines added to "{label}" cannot be told apart any more; change the record by hand',
            )
        keys += alike
    return sorted(set(keys))


def _gone(label: str) -> Refused:
    return rule(f"表单已没有“{label}”", f'The form no longer has "{label}"')
