"""What a generate is made from: ``sourceRef`` read and normalized, the target's rows filled from it.

``{"formId", "record": id or number, "lines": [{"id", "quantity"?}]}``; without ``lines``: all with something left.
The payload may say more of the target: master fields, and lines one per chosen source line in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form, Generate
from staging.domain.canonical import decimal_text
from staging.domain.errors import Refused, rule
from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.coerce import BadValue, coerce
from workers.erp.sql.generate import Source, generate_from, read_source
from workers.erp.sql.problems import Problems
from workers.erp.sql.records import find_record
from workers.erp.sql.tree import Line, load_lines
from workers.erp.sql.values import exact, to_json

_KEYS = {"formId", "record", "lines"}
_LINE_KEYS = {"id", "quantity"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The source as read, and its ``sourceRef`` in normalized form (record and lines by key, quantities filled in)."""

    source: Source
    ref: dict[str, Any]


def read_chosen(
    connection: Connection,
    tables: CatalogueTables,
    tenant: Tenant,
    form: Form,
    source_ref: Mapping[str, Any] | None,
    problems: Problems,
    *,
    lock: bool,
) -> Chosen:
    """Find record and lines. Raises record_not_found, record_ambiguous, state_conflict (not examined, invalid), and
    ``problems`` for a ``sourceRef`` of another shape."""
    ref = _shape(source_ref, problems)
    generate = generate_from(form, ref["formId"])
    record = find_record(connection, tables, tenant, tables.form(generate.source), ref["record"], lock=lock)
    lines = ref.get("lines")
    if lines is None:
        lines = [{"id": key} for key in _open_lines(connection, tables, tenant, generate, record.key)]
    if not lines:
        raise rule("来源单据没有可生成的明细", "The source has no line left to take")
    normalized = {"formId": generate.source, "record": record.key, "lines": lines}
    return Chosen(read_source(connection, tables, tenant, generate, normalized, lock=lock), normalized)


def fill_target(root: Node, chosen: Chosen, tables: CatalogueTables, problems: Problems) -> None:
    """Complete the tree of the new record with what the maps bring, and ``chosen.ref`` with the quantities taken."""
    generate, source = chosen.source.generate, chosen.source
    origin = tables.master(generate.source)
    for target, name in generate.master.items():
        _set(root, target, to_json(origin.fields[name], source.values[name]), problems)
    child = next(c for c in root.of.children if c.name == generate.target_child)
    lines = root.children.setdefault(child.name, [])
    if not lines:
        table = root.table.children[child.name]
        paths = (f"{root.at(child.name)}[{n}]" for n in range(len(source.lines)))
        lines += [Node(table, child, "add", p, line_no=n, upper=root) for n, p in enumerate(paths, 1)]
    if len(lines) != len(source.lines):
        zh = f"选择了{len(source.lines)}条来源行，却有{len(lines)}条明细"
        en = f"{len(source.lines)} source lines are chosen, but there are {len(lines)} lines"
        problems.bad(root.at(child.name), zh, en)
        problems.raise_any()
    below = origin.children[generate.source_child]
    for line, taken, wanted in zip(lines, source.lines, chosen.ref["lines"], strict=True):
        for target, name in generate.lines.items():
            _set(line, target, to_json(below.fields[name], taken.values[name]), problems)
        quantity = wanted.get("quantity")
        if quantity is None:
            own = generate.lines.get(generate.quantity, generate.quantity)
            left = source.left.get(taken.key)
            if left is not None and left <= 0 and generate.quantity not in line.new:
                raise _nothing_left(taken)
            quantity = (
                decimal_text(left) if left is not None else to_json(below.fields[own], taken.values[own])
            )
        _set(line, generate.quantity, quantity, problems)
        wanted["quantity"] = line.new.get(generate.quantity)


def _set(node: Node, name: str, value: Any, problems: Problems) -> None:
    """A mapped value, unless the caller gave one; what cannot be changed later cannot differ from its source."""
    if value is None:
        return
    if name in node.new:
        if not node.fields[name].on_update and node.new[name] != value:
            problems.bad(
                node.at(name), "取自来源单据，不可另填", "comes from the source document: leave it out"
            )
        return
    try:
        node.new[name] = coerce(node.fields[name], value)
    except BadValue as bad:
        problems.add(node.at(name), ErrorCode.FIELD_INVALID, bad.reason)


def check_left(chosen: Chosen) -> None:
    """Raise business_rule, naming what is left, where a filled-in quantity is nothing or more than there is."""
    source = chosen.source
    wanted: dict[str, Decimal] = {}
    for line, one in zip(source.lines, chosen.ref["lines"], strict=True):
        quantity = exact(one["quantity"] or 0)
        if quantity <= 0:
            raise _nothing_left(line)
        wanted[line.key] = wanted.get(line.key, Decimal(0)) + quantity
    over = [
        line for line in source.lines if line.key in source.left and wanted[line.key] > source.left[line.key]
    ]
    if over:
        have = {line.key: decimal_text(source.left[line.key]) for line in over}
        need = {line.key: decimal_text(wanted[line.key]) for line in over}
        zh = "；".join(f"来源第{o.line_no}行可用 {have[o.key]}，需要 {need[o.key]}" for o in over)
        en = "; ".join(f"source line {o.line_no} has {have[o.key]} left, needed {need[o.key]}" for o in over)
        raise rule(f"可用数量不足：{zh}", f"Not enough left: {en}", line=over[0].key)


def _nothing_left(line: Line) -> Refused:
    zh, en = f"来源第{line.line_no}行没有可生成的数量", f"Source line {line.line_no} has nothing left to take"
    return rule(zh, en, line=line.key)


def _open_lines(
    connection: Connection, tables: CatalogueTables, tenant: Tenant, generate: Generate, key: str
) -> list[str]:
    """Keys of the lines of which something is left."""
    table = tables.master(generate.source).children[generate.source_child]
    back = generate.write_back
    lines = load_lines(connection, table, tenant, [key], extra=[back.taken] if back else [], deep=False)
    if back is None:
        return [line.key for line in lines]
    return [
        line.key for line in lines if exact(line.values[back.limit] or 0) > exact(line.extra[back.taken] or 0)
    ]


def _shape(source_ref: Mapping[str, Any] | None, problems: Problems) -> dict[str, Any]:
    """``source_ref`` with its parts of the right type, lines copied; ``problems`` are raised."""
    if not source_ref:
        problems.required("sourceRef", {"zh": "来源单据", "en": "sourceRef"})
        problems.raise_any()
    ref = dict(source_ref or {})
    for name in ref.keys() - _KEYS:
        problems.bad(
            f"sourceRef.{name}", "应为 formId、record、lines", "formId, record and lines are expected"
        )
    for name in ("formId", "record"):
        if not isinstance(ref.get(name), str) or not ref[name]:
            problems.required(f"sourceRef.{name}", {"zh": name, "en": name})
    lines = ref.get("lines")
    if lines is not None:
        ref["lines"] = _line_shapes(lines, problems)
    problems.raise_any()
    return ref


def _line_shapes(lines: Any, problems: Problems) -> list[dict[str, Any]]:
    if not isinstance(lines, list):
        problems.bad("sourceRef.lines", "应为列表", "a list is expected")
        return []
    seen: set[str] = set()
    result = []
    for n, line in enumerate(lines):
        path = f"sourceRef.lines[{n}]"
        if (
            not isinstance(line, Mapping)
            or not line.keys() <= _LINE_KEYS
            or not isinstance(line.get("id"), str)
        ):
            problems.bad(path, "应为 {id, quantity?}", "{id, quantity?} is expected")
        elif line["id"] in seen:
            problems.bad(path, "同一来源行出现两次", "the same source line comes twice")
        else:
            seen.add(line["id"])
            result.append(dict(line))
    return result


def not_a_generate() -> Refused:
    """For a ``sourceRef`` on another operation."""
    text = {"zh": "只有 generate 有 sourceRef", "en": "only generate takes a sourceRef"}
    return Refused(ErrorCode.FIELD_UNKNOWN, {"field": "sourceRef"}, text=text)
