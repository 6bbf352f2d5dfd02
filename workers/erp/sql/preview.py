"""What a person is shown before confirming: exactly what would change, complete, in their language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from staging.contracts.form import Form, FormField
from staging.contracts.preparation import (
    ChildLine,
    ChildSection,
    FieldChange,
    OpType,
    Preview,
    PreviewWarning,
)
from workers.erp.sql.change import Node
from workers.erp.sql.pins import Pins
from workers.erp.sql.texts import Texts

OP_LABELS: Mapping[str, tuple[str, str]] = {
    OpType.CREATE: ("新增", "Create"),
    OpType.UPDATE: ("修改", "Update"),
    OpType.DELETE: ("删除", "Delete"),
    OpType.EXAMINE: ("审核", "Examine"),
    OpType.CANCEL_EXAMINE: ("取消审核", "Cancel examination"),
    OpType.INVALID: ("作废", "Make invalid"),
    OpType.CANCEL_INVALID: ("取消作废", "Make valid again"),
    OpType.GENERATE: ("生成", "Generate"),
}
_STATE_AFTER: Mapping[OpType, tuple[str, bool]] = {
    OpType.EXAMINE: ("@examined", True),
    OpType.CANCEL_EXAMINE: ("@examined", False),
    OpType.INVALID: ("@invalid", True),
    OpType.DELETE: ("@invalid", True),
    OpType.CANCEL_INVALID: ("@invalid", False),
}


def op_label(op: str, locale: str) -> str:
    """The operation type in words; a command's own verb as it is."""
    zh, en = OP_LABELS.get(op, (op, op))
    return zh if locale == "zh" else en


def preview_of(
    form: Form,
    op: OpType,
    root: Node,
    pins: Pins,
    texts: Texts,
    warnings: Sequence[PreviewWarning],
    *,
    read: Mapping[str, Sequence[str]],
    source: tuple[Form, str] | None = None,
) -> Preview:
    """The preview of a worked-out change; ``texts`` are loaded. ``read``: child → fields shown of lines that stay.

    ``source``: form and key of what is generated from.
    """
    locale = texts.locale
    label = form.label.text(locale)
    record = texts.title(form, root.key, root.old) if root.key else ""
    word = op_label(op, locale)
    title = f"{word}{label}" if locale == "zh" else f"{word} {label.lower()}"
    fields = list(_changes(root, texts, (f for f in root.fields.values() if not f.computed)))
    if source:
        fields.insert(0, _source_change(*source, texts))
    if op in _STATE_AFTER and not (op is OpType.DELETE and form.operations[op].physical):
        fields.append(_state_change(op, pins, texts))
    return Preview(
        title=f"{title} {record}".strip(),
        form_id=form.id,
        form_label=label,
        op_type=op,
        op_label=word,
        record_id=root.key,
        record_label=record,
        fields=fields,
        children=_sections(root, texts, read),
        totals=list(_changes(root, texts, (f for f in root.fields.values() if f.computed))),
        warnings=list(warnings),
    )


def field_change(field: FormField, old: Any, new: Any, texts: Texts) -> FieldChange:
    """One field, old → new."""
    return FieldChange(
        field=field.name,
        label=field.label.text(texts.locale),
        type=field.type,
        old=old,
        new=new,
        old_text=texts.of(field, old),
        new_text=texts.of(field, new),
    )


def _changes(node: Node, texts: Texts, fields: Iterable[FormField]) -> Iterable[FieldChange]:
    for field in fields:
        if node.action == "remove":
            if node.old.get(field.name) is not None:
                yield field_change(field, node.old[field.name], None, texts)
        elif field.name in node.new:
            yield field_change(field, node.old.get(field.name), node.new[field.name], texts)


def _state_change(op: OpType, pins: Pins, texts: Texts) -> FieldChange:
    name, after = _STATE_AFTER[op]
    pin = pins.by_name[name]
    yes, no = ("是", "否") if texts.locale == "zh" else ("yes", "no")
    return FieldChange(
        field=name.removeprefix("@"),
        label=pin.label.text(texts.locale),
        type="boolean",
        old=pin.value,
        new=after,
        old_text=yes if pin.value else no,
        new_text=yes if after else no,
    )


def _source_change(form: Form, key: str, texts: Texts) -> FieldChange:
    label = form.label.text(texts.locale)
    return FieldChange(
        field="sourceRef",
        label=f"来源{label}" if texts.locale == "zh" else f"From {label.lower()}",
        type="reference",
        new=key,
        new_text=texts.record(form.id, key),
    )


def _sections(node: Node, texts: Texts, read: Mapping[str, Sequence[str]]) -> list[ChildSection]:
    sections = []
    for name, lines in node.children.items():
        shown = [
            _line(line, texts, read.get(name, ())) for line in lines if line.is_changed() or name in read
        ]
        if shown:
            label = node.child(name).label.text(texts.locale)
            sections.append(ChildSection(child=name, label=label, lines=shown))
    return sections


def _line(line: Node, texts: Texts, read: Sequence[str]) -> ChildLine:
    fields = list(_changes(line, texts, line.fields.values()))
    if line.action == "keep" and read:
        fields = [field_change(line.fields[n], line.old.get(n), line.old.get(n), texts) for n in read]
    elif line.action == "change":
        fields = [*_naming(line, texts, {change.field for change in fields}), *fields]
    return ChildLine(
        action=line.action,
        line_id=line.key,
        fields=fields,
        children=_sections(line, texts, {}),
    )


def _naming(line: Node, texts: Texts, changed: set[str]) -> Iterable[FieldChange]:
    """A changed line also shows, unchanged, the first field that says which line it is."""
    first = next((f for f in line.fields.values() if line.old.get(f.name) is not None), None)
    if first and first.name not in changed:
        value = line.old[first.name]
        yield field_change(first, value, value, texts)
