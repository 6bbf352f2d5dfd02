"""A change to a record as a tree: the master, its lines, the lines below. What prepare works out and execution checks.

Values are JSON-ready (see ``values``). The normalized payload is this tree written down,
``{field: value, child: [lines]}``, computed fields included, so that its hash covers all that was shown. Lines of an
update carry ``id`` (changed), ``id`` and ``remove`` (removed) or neither (added at the end); lines that stay as they
are do not appear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staging.contracts.form import Child, Form, FormField
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.children_write import LINE_ID, REMOVE

Action = Literal["add", "change", "remove", "keep"]


@dataclass(slots=True)
class Node:
    """A row before and after. ``path``: where it is in the caller's payload ("" for the master, ``parts[1]``).

    ``key`` is "" for a new row; ``old``: what is stored, ``new``: what is set; ``gone``: named by the payload, but not
    there any more.
    """

    table: RowTable
    of: Form | Child
    action: Action
    path: str = ""
    key: str = ""
    line_no: int = 0
    old: dict[str, Any] = field(default_factory=dict)
    new: dict[str, Any] = field(default_factory=dict)
    children: dict[str, list[Node]] = field(default_factory=dict)
    upper: Node | None = None
    gone: bool = False

    @property
    def fields(self) -> Mapping[str, FormField]:
        return self.table.fields

    def value(self, name: str) -> Any:
        """What the field will be."""
        return self.new[name] if name in self.new else self.old.get(name)

    def values(self) -> dict[str, Any]:
        """All fields as they will be."""
        return self.old | self.new

    def at(self, name: str) -> str:
        """Public path of a field of this row."""
        return f"{self.path}.{name}" if self.path else name

    def child(self, name: str) -> Child:
        return next(c for c in self.of.children if c.name == name)

    def walk(self) -> Iterator[Node]:
        """This row and all below it, upper ones first."""
        yield self
        for lines in self.children.values():
            for line in lines:
                yield from line.walk()

    def touched(self) -> Iterator[Node]:
        """Rows of ``walk`` that are added or changed."""
        return (node for node in self.walk() if node.action in ("add", "change"))

    def is_changed(self) -> bool:
        """True if this row or one below it is not as it was."""
        return any(node.action in ("add", "remove") or node.new for node in self.walk())

    def payload(self) -> dict[str, Any]:
        """The tree as normalized payload (without ids on top level)."""
        written = dict(self.new)
        for name, lines in self.children.items():
            shown = [line for line in lines if line.is_changed()]
            if shown:
                written[name] = [line._line() for line in shown]
        return written

    def _line(self) -> dict[str, Any]:
        if self.action == "remove":
            return {LINE_ID: self.key, REMOVE: True}
        return {LINE_ID: self.key, **self.payload()} if self.key else self.payload()
