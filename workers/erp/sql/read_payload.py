"""Payload → tree: every name looked up, every value coerced, every bad one reported with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.form import Child, Form, FormField
from staging.domain.intake import sanitize_text
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.change import Node
from workers.erp.sql.children_write import LINE_ID, REMOVE
from workers.erp.sql.coerce import BadValue, coerce
from workers.erp.sql.problems import Problems
from workers.erp.sql.tree import Line
from workers.erp.sql.values import to_json


class PayloadReader:
    """``trusted``: a payload this adapter normalized before, so computed and unwritable fields are in it, too."""

    def __init__(self, form: Form, master: RowTable, problems: Problems, *, trusted: bool) -> None:
        self._form, self._master, self._problems, self._trusted = form, master, problems, trusted

    def create(self, payload: Mapping[str, Any]) -> Node:
        """The tree of a new record."""
        root = Node(self._master, self._form, "add")
        self._fill(root, payload)
        return root

    def update(
        self, payload: Mapping[str, Any], key: str, old: dict[str, Any], lines: Mapping[str, Sequence[Line]]
    ) -> Node:
        """The tree of a change to the stored record; ``lines`` are those of the children that ``payload`` names."""
        root = Node(self._master, self._form, "change", key=key, old=old)
        for name, stored in lines.items():
            table, child = self._master.children[name], root.child(name)
            root.children[name] = [stored_node(table, child, line, root) for line in stored]
        self._fill(root, payload)
        return root

    def _fill(self, node: Node, payload: Mapping[str, Any]) -> None:
        for name, raw in payload.items():
            if name in node.fields:
                self._field(node, node.fields[name], raw)
            elif name in node.table.children:
                self._lines(node, name, raw)
            elif name != LINE_ID or not node.key or node.upper is None:  # only stored lines carry it
                self._problems.unknown(sanitize_text(node.at(name), 200), name, node.of)

    def _field(self, node: Node, field: FormField, raw: Any) -> None:
        if not self._trusted and not self._may_set(node, field):
            self._not_writable(node.at(field.name), field, node)
            return
        try:
            value = coerce(field, raw)
        except BadValue as bad:
            self._problems.add(node.at(field.name), ErrorCode.FIELD_INVALID, bad.reason)
            return
        default = field.default
        if value is None and default and default.value is not None and not field.required:
            # An emptied field with a constant default: its column is often NOT NULL.
            value = coerce(field, default.value)
        if node.action == "add":
            if value is not None:
                node.new[field.name] = value
        elif self._trusted or value != node.old.get(field.name):
            node.new[field.name] = value

    @staticmethod
    def _may_set(node: Node, field: FormField) -> bool:
        return field.accepts_input and (node.action == "add" or field.on_update)

    def _not_writable(self, path: str, field: FormField, node: Node) -> None:
        if field.computed:
            reason = {"zh": f"“{field.label.zh}”由系统计算", "en": f'"{field.label.en}" is computed'}
        elif field.writable:
            reason = {
                "zh": f"“{field.label.zh}”新增后不可修改",
                "en": f'"{field.label.en}" cannot be changed after creation',
            }
        else:
            reason = {"zh": f"“{field.label.zh}”由系统填写", "en": f'"{field.label.en}" is set by the system'}
        self._problems.add(path, ErrorCode.FIELD_NOT_WRITABLE, reason)

    def _lines(self, node: Node, name: str, raw: Any) -> None:
        path, child, table = node.at(name), node.child(name), node.table.children[name]
        if not isinstance(raw, list):
            self._problems.bad(path, "应为明细行的列表", "a list of lines is expected")
            return
        stored = node.children.setdefault(name, [])
        by_key = {line.key: line for line in stored}
        named: set[str] = set()
        for number, item in enumerate(raw):
            here = f"{path}[{number}]"
            if not isinstance(item, Mapping):
                self._problems.bad(here, "应为对象{…}", "an object {…} is expected")
            elif LINE_ID in item and node.action != "add":
                self._stored_line(node, table, child, here, item, by_key, named)
            else:
                line = Node(table, child, "add", here, line_no=len(stored) + 1, upper=node)
                stored.append(line)
                self._fill(line, item)

    def _stored_line(
        self,
        node: Node,
        table: RowTable,
        child: Child,
        path: str,
        item: Mapping[str, Any],
        by_key: Mapping[str, Node],
        named: set[str],
    ) -> None:
        key = item[LINE_ID]
        line = by_key.get(key) if isinstance(key, str) else None
        if line is None:
            if not self._trusted:
                self._problems.bad(f"{path}.id", "没有这一明细行", "there is no such line")
                return
            line = Node(table, child, "change", path, str(key), upper=node, gone=True)
            node.children[child.name].append(line)
        elif line.key in named:
            self._problems.bad(f"{path}.id", "同一明细行出现两次", "the same line comes twice")
            return
        named.add(line.key)
        line.path = path
        if REMOVE not in item:
            line.action = "change"
            self._fill(line, item)
        elif item[REMOVE] is True and len(item) == len((LINE_ID, REMOVE)):
            for below in line.walk():
                below.action = "remove"
        else:
            self._problems.bad(
                f"{path}.remove",
                "删除行只写 id 与 remove: true",
                "a removed line has id and remove: true only",
            )


def stored_node(table: RowTable, child: Child, line: Line, upper: Node) -> Node:
    """The node of a stored line, for now kept as it is, with what is below it."""
    old = {name: to_json(table.fields[name], value) for name, value in line.values.items()}
    node = Node(
        table, child, "keep", f"{upper.at(child.name)}[{line.key}]", line.key, line.line_no, old, upper=upper
    )
    for name, lines in line.children.items():
        node.children[name] = [
            stored_node(table.children[name], node.child(name), one, node) for one in lines
        ]
    return node
