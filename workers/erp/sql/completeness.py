"""What is missing from a tree, what is too many, and what comes twice. Totals worked out and bounded."""

from __future__ import annotations

from typing import Any

from staging.contracts.form import Child, FieldType
from workers.erp.sql.change import Node
from workers.erp.sql.problems import Problems
from workers.erp.sql.totals import computed_values
from workers.erp.sql.values import exact, to_json


def check_complete(root: Node, problems: Problems) -> None:
    """Required fields of added and changed rows, number of lines, lines alike in their child's ``unique`` fields."""
    bad = {problem.field for problem in problems.found}
    for node in root.touched():
        for field in node.fields.values():
            if bad and (field.default or node.at(field.name) in bad):
                continue  # empty only because of another problem, perhaps
            if field.required and field.accepts_input and not node.gone and _is_missing(node, field.name):
                problems.required(node.at(field.name), field.label.model_dump())
        for name in node.table.children:
            if node.action == "add" or name in node.children:
                _check_lines(node, node.child(name), problems)


def compute_totals(node: Node, problems: Problems) -> None:
    """Set every computed field of the tree, lines before the sums over them; those that stay as they are stay out."""
    for lines in node.children.values():
        for line in lines:
            compute_totals(line, problems)
    if node.action not in ("add", "change"):
        return
    below = {
        name: [line.values() for line in lines if line.action != "remove"]
        for name, lines in node.children.items()
    }
    if node.action == "add":
        below = {name: below.get(name, []) for name in node.table.children}
    for name, amount in computed_values(node.fields, node.values(), below).items():
        field = node.fields[name]
        if amount is not None and amount.adjusted() >= field.precision - (field.decimals or 0) and amount:
            zh, en = f"计算结果过大：{amount}", f"the computed value is too large: {amount}"
            problems.bad(node.at(name), zh, en)
            continue
        value = to_json(field, amount)
        if value != node.old.get(name):
            node.new[name] = value
        else:
            node.new.pop(name, None)


def _is_missing(node: Node, name: str) -> bool:
    if node.action == "change" and name not in node.new:
        return False
    value = node.new.get(name)
    return value is None or (isinstance(value, str) and not value.strip())


def _check_lines(node: Node, child: Child, problems: Problems) -> None:
    path = node.at(child.name)
    left = [line for line in node.children.get(child.name, []) if line.action != "remove"]
    if len(left) < child.min_lines:
        zh, en = f"至少需要{child.min_lines}行", f"at least {child.min_lines} lines are needed"
        problems.bad(path, zh, en)
    if len(left) > child.max_lines:
        zh, en = (
            f"最多{child.max_lines}行，共{len(left)}行",
            f"at most {child.max_lines} lines, not {len(left)}",
        )
        problems.bad(path, zh, en)
    if child.unique:
        _check_unique(left, child, problems)


def _check_unique(lines: list[Node], child: Child, problems: Problems) -> None:
    seen: dict[tuple[Any, ...], Node] = {}
    for line in lines:
        alike = tuple(_comparable(line, name) for name in child.unique)
        if None in alike:
            continue
        first = seen.setdefault(alike, line)
        if first is not line:
            labels = [line.fields[name].label for name in child.unique]
            zh = f"与另一行重复（{'、'.join(label.zh for label in labels)}）"
            en = f"another line has the same {', '.join(label.en for label in labels)}"
            problems.bad((first if line.action == "keep" else line).path, zh, en)


def _comparable(line: Node, name: str) -> Any:
    value = line.value(name)
    return exact(value) if value is not None and line.fields[name].type is FieldType.DECIMAL else value
