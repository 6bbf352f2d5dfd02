"""Pins: the values, as seen, of what an operation reads or writes; and what differs when it is looked at again.

A pin has a flat name: ``price`` of the master, ``parts[<key>].price`` of a line, ``parts[<key>]`` for the line being
there, ``@examined`` for a state, ``source.lines[<key>].taken`` for a source line of a generate. Other columns are not
pinned, so an unrelated edit does not spoil a proposal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form, Label
from staging.domain.canonical import fingerprint
from staging.domain.errors import Refused
from workers.erp.sql.change import Node
from workers.erp.sql.generate import Source
from workers.erp.sql.values import exact, to_json

_STATES = {"examined": Label(zh="已审核", en="Examined"), "invalid": Label(zh="已作废", en="Invalid")}
_TAKEN = Label(zh="已占用数量", en="Taken so far")
_LINE = Label(zh="明细行", en="Line")


@dataclass(frozen=True, slots=True)
class Pin:
    """``value`` as it is now; ``proposed`` what the operation would make of it, None if it only reads it."""

    value: Any
    label: Label
    proposed: Any = None


@dataclass(slots=True)
class Pins:
    """Pins by name, in the order in which a person would read them."""

    by_name: dict[str, Pin] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Name → value, JSON-ready, to be kept."""
        return {name: pin.value for name, pin in self.by_name.items()}

    def version(self) -> str:
        """Fingerprint of the values, "" if nothing is pinned."""
        return version_of(self.values())

    def differences(self, seen: Mapping[str, Any], locale: str) -> list[dict[str, Any]]:
        """``[{field, label, seen, now, proposed}]`` of all that is not as it was seen."""
        names = [*self.by_name, *(name for name in seen if name not in self.by_name)]
        nothing = Pin(None, Label(zh="", en=""))
        result = []
        for name in names:
            pin = self.by_name.get(name, nothing)
            if name not in seen or name not in self.by_name or seen[name] != pin.value:
                result.append(
                    {
                        "field": name,
                        "label": pin.label.text(locale) or name,
                        "seen": seen.get(name),
                        "now": pin.value,
                        "proposed": pin.proposed,
                    }
                )
        return result


def version_of(values: Mapping[str, Any]) -> str:
    """``target_version`` of pinned values."""
    return fingerprint(values) if values else ""


def require_unchanged(pins: Pins, seen: Mapping[str, Any], record: str, locale: str) -> None:
    """Raise version_conflict, with what was seen, what is now and what was proposed, unless all is as ``seen``."""
    conflict = pins.differences(seen, locale)
    if conflict:
        raise Refused(ErrorCode.VERSION_CONFLICT, {"record": record}, conflict=tuple(conflict))


def pins_of(
    form: Form,
    root: Node,
    flags: Mapping[str, Any] | None,
    *,
    read: Mapping[str, Sequence[str]] | None = None,
) -> Pins:
    """Pins of a change to a stored record (``flags``: its state columns) or, with ``flags`` None, of a new one: none.

    ``read``: child → fields that the operation reads of every line (stock moves).
    """
    pins = Pins()
    if flags is None:
        return pins
    for name, stamp in (("examined", form.states.examined), ("invalid", form.states.invalid)):
        if stamp:
            pins.by_name[f"@{name}"] = Pin(bool(flags[stamp.column]), _STATES[name])
    pins.by_name.update(_row_pins(root, "", set(root.fields) if root.action == "remove" else None))
    for child, lines in root.children.items():
        for line in lines:
            pins.by_name.update(_line_pins(line, f"{child}[{line.key}]", (read or {}).get(child, ())))
    return pins


def add_source_pins(pins: Pins, form: Form, source: Source) -> None:
    """Pins of the source (``form``) of a generate: its lines' limit and what has been taken of them."""
    generate = source.generate
    if generate.write_back is None:
        return
    name = generate.write_back.limit
    child = next(c for c in form.children if c.name == generate.source_child)
    limit = next(f for f in child.fields if f.name == name)
    for line in source.lines:
        at = f"source.{child.name}[{line.key}]"
        taken = line.extra[generate.write_back.taken]
        pins.by_name[f"{at}.{name}"] = Pin(to_json(limit, line.values[name]), limit.label)
        pins.by_name[f"{at}.taken"] = Pin(to_json(limit, exact(taken or 0)), _TAKEN)


def _line_pins(line: Node, name: str, read: Sequence[str]) -> Iterator[tuple[str, Pin]]:
    if line.action == "add":
        return
    if line.action in ("change", "remove") or read:
        yield name, Pin(None if line.gone else True, _label(_LINE, line), line.action)
    if not line.gone:
        names = set(read) | (set(line.fields) if line.action == "remove" else set())
        yield from _row_pins(line, f"{name}.", names)
    for child, lines in line.children.items():
        for below in lines:
            yield from _line_pins(below, f"{name}.{child}[{below.key}]", ())


def _row_pins(node: Node, prefix: str, read: set[str] | None = None) -> Iterator[tuple[str, Pin]]:
    for name, field_ in node.fields.items():
        if name in node.new or (read and name in read):
            proposed = node.new.get(name)
            yield f"{prefix}{name}", Pin(node.old.get(name), _label(field_.label, node), proposed)


def _label(label: Label, node: Node) -> Label:
    if node.upper is None:
        return label
    child = node.upper.child(node.table.path.rpartition(".")[2]).label
    return Label(
        zh=f"{child.zh}第{node.line_no}行 {label.zh}", en=f"{child.en} line {node.line_no}: {label.en}"
    )
