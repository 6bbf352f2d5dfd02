"""A record's lines as they are in the database, with the lines below them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, Connection, select

from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import RowTable


@dataclass(slots=True)
class Line:
    """``values`` by public name as SQL gives them (Decimal, date …), ``extra`` by SQL name where asked for."""

    key: str
    parent: str
    line_no: int
    values: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)
    children: dict[str, list[Line]] = field(default_factory=dict)


def load_lines(
    connection: Connection,
    table: RowTable,
    tenant: Tenant,
    parents: Sequence[str],
    *,
    extra: Sequence[str] = (),
    keys: Sequence[str] | None = None,
    lock: bool = False,
    deep: bool = True,
) -> list[Line]:
    """The lines of ``table`` below ``parents`` in line order (``keys``: only those), one statement per table.

    ``lock`` takes the rows in key order; ``deep`` also reads the lines below, unlocked.
    """
    if not parents or table.parent is None:
        return []
    names = list(table.fields)
    order: list[Column[Any]] = [] if table.line_no is None else [table.line_no]
    columns: list[Column[Any]] = [
        table.key,
        table.parent,
        *order,
        *(table.column(n) for n in names),
        *map(table.named, extra),
    ]
    statement = select(*columns).where(table.parent.in_(parents), *table.of_tenant(tenant))
    if keys is not None:
        statement = statement.where(table.key.in_(keys))
    statement = statement.order_by(table.key)
    if lock:
        statement = statement.with_for_update()
    lines = []
    for key, parent, *rest in connection.execute(statement):
        line_no = int(rest.pop(0) or 0) if order else 0
        values = dict(zip(names, rest, strict=False))
        lines.append(Line(key, parent, line_no, values, dict(zip(extra, rest[len(names) :], strict=True))))
    lines.sort(key=lambda line: (line.line_no, line.key))
    if deep and lines:
        for name, below in table.children.items():
            _hang(lines, name, load_lines(connection, below, tenant, [line.key for line in lines]))
    return lines


def _hang(lines: Sequence[Line], name: str, below: Sequence[Line]) -> None:
    by_parent: dict[str, list[Line]] = defaultdict(list)
    for line in below:
        by_parent[line.parent].append(line)
    for line in lines:
        line.children[name] = by_parent[line.key]


def values_of(lines: Mapping[str, Sequence[Line]]) -> dict[str, list[dict[str, Any]]]:
    """Child name → the values of its lines, as ``totals.computed_values`` takes them."""
    return {name: [line.values for line in some] for name, some in lines.items()}


def all_keys(table: RowTable, lines: Sequence[Line]) -> Iterator[tuple[RowTable, list[str]]]:
    """Per table the keys of ``lines`` and of everything below them, lowest tables first (the order to delete in)."""
    for name, below in table.children.items():
        yield from all_keys(below, [one for line in lines for one in line.children.get(name, [])])
    if lines:
        yield table, [line.key for line in lines]
