"""Lines of a record: inserted, changed, removed, down to the lines below them. Few statements: per table, not per line.

Payload of lines: new ones are ``{field: value, childName: [lines]}``. In an update a list holds only lines touched:
``{"id": key, field: value, …}`` changes one (its own child lists likewise), ``{"id": key, "remove": true}`` removes it
with what is below it, and one without ``id`` is added at the end. Lines not mentioned stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, insert, update

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.storage.dialect import one_or_many
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.context import WriteContext, new_key
from workers.erp.sql.totals import computed_values
from workers.erp.sql.tree import Line, all_keys, values_of
from workers.erp.sql.values import to_sql

Payload = Mapping[str, Any]
LINE_ID, REMOVE = "id", "remove"


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line to insert below ``parent``; ``links`` are columns by SQL name that are no payload (its source line)."""

    parent: str
    line_no: int
    payload: Payload
    links: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Touched:
    """A line that an update changed or removed, as it was and as it is (None: removed)."""

    before: Line
    after: Mapping[str, Any] | None


@dataclass(slots=True)
class LineChanges:
    """What an update does to the lines of a record, collected before the first statement."""

    inserts: dict[str, tuple[RowTable, list[NewLine]]] = field(default_factory=dict)
    updates: dict[str, tuple[RowTable, list[tuple[str, str, dict[str, Any]]]]] = field(default_factory=dict)
    deletes: list[tuple[RowTable, list[str]]] = field(default_factory=list)
    touched: dict[str, list[Touched]] = field(default_factory=lambda: defaultdict(list))


def row_values(table: RowTable, payload: Payload) -> dict[str, Any]:
    """Column → bound value of the fields that ``payload`` has (child lists are left out)."""
    return {
        table.fields[name].column: to_sql(table.fields[name], value)
        for name, value in payload.items()
        if name in table.fields
    }


def with_totals(table: RowTable, payload: Payload) -> dict[str, Any]:
    """A new row's payload with every computed field worked out, bottom up: lines first, then the sums over them."""
    done = dict(payload)
    for name, below in table.children.items():
        if name in payload:
            done[name] = [with_totals(below, line) for line in payload[name]]
    done.update(computed_values(table.fields, done, {name: done.get(name) or () for name in table.children}))
    return done


def insert_rows(ctx: WriteContext, table: RowTable, rows: Iterable[dict[str, Any]]) -> None:
    """Insert column → value of each row: one statement per set of filled columns."""
    batches: dict[frozenset[str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        batches[frozenset(row)].append(row)
    for alike in batches.values():
        ctx.connection.execute(insert(table.table), one_or_many(alike))


def insert_lines(ctx: WriteContext, table: RowTable, lines: Sequence[NewLine]) -> None:
    """Insert ``lines`` (totals included), of whatever parents, and all below them. Few statements a table."""
    keys = [new_key() for _ in lines]
    insert_rows(ctx, table, (_new_row(ctx, table, k, line) for k, line in zip(keys, lines, strict=True)))
    for name, below in table.children.items():
        lower = [
            NewLine(key, n, payload)
            for key, line in zip(keys, lines, strict=True)
            for n, payload in enumerate(line.payload.get(name) or (), 1)
        ]
        if lower:
            insert_lines(ctx, below, lower)


def _new_row(ctx: WriteContext, table: RowTable, key: str, line: NewLine) -> dict[str, Any]:
    row: dict[str, Any] = {} if table.line_no is None else {table.line_no.name: line.line_no}
    # An empty value is left to the column's default: ERPs' amounts are often NOT NULL DEFAULT 0.
    row.update({c: v for c, v in row_values(table, line.payload).items() if v is not None})
    row.update(line.links)
    row.update(table.tenant_values(ctx.tenant))
    row[table.key.name] = key
    if table.parent is not None:
        row[table.parent.name] = line.parent
    return row


def merge_lines(
    table: RowTable, parent: str, current: Sequence[Line], items: Sequence[Payload], changes: LineChanges
) -> list[Mapping[str, Any]]:
    """Work out what ``items`` do to the lines ``current`` of ``parent``, into ``changes``.

    Returns the values of all lines as they will be, for the sums above. version_conflict for a line that is gone.
    """
    known = {line.key: line for line in current}
    result: dict[str, Mapping[str, Any]] = {line.key: line.values for line in current}
    added: list[Mapping[str, Any]] = []
    next_no = max((line.line_no for line in current), default=0) + 1
    for item in items:
        key = item.get(LINE_ID)
        if key is None:
            payload = with_totals(table, item)
            added.append(payload)
            changes.inserts.setdefault(table.path, (table, []))[1].append(NewLine(parent, next_no, payload))
            next_no += 1
            continue
        line = known.get(key)
        if line is None or key not in result:
            raise _gone(key)
        if item.get(REMOVE):
            del result[key]
            changes.deletes.extend(all_keys(table, [line]))
            changes.touched[table.path].append(Touched(line, None))
        else:
            result[key] = _changed(table, line, item, changes)
    return [*result.values(), *added]


def _changed(table: RowTable, line: Line, item: Payload, changes: LineChanges) -> Mapping[str, Any]:
    below: dict[str, Sequence[Mapping[str, Any]]] = dict(values_of(line.children))
    for name, lower in table.children.items():
        if name in item:
            below[name] = merge_lines(lower, line.key, line.children.get(name, []), item[name], changes)
    fields = table.fields
    after = line.values | {
        name: to_sql(fields[name], value) for name, value in item.items() if name in fields
    }
    after.update(computed_values(fields, after, below))
    different = {fields[n].column: v for n, v in after.items() if v != line.values.get(n)}
    if different:
        changes.updates.setdefault(table.path, (table, []))[1].append((line.key, line.parent, different))
    changes.touched[table.path].append(Touched(line, after))
    return after


def write_changes(ctx: WriteContext, changes: LineChanges) -> None:
    """Execute what ``merge_lines`` collected: lower lines removed first, changes in key order, then the new lines."""
    for table, keys in changes.deletes:
        delete_lines(ctx, table, keys)
    for table, rows in changes.updates.values():
        _update_lines(ctx, table, rows)
    for table, lines in changes.inserts.values():
        insert_lines(ctx, table, lines)


def delete_lines(ctx: WriteContext, table: RowTable, keys: Sequence[str]) -> None:
    """Delete rows by key, within the tenant. Raises version_conflict unless each of them was there."""
    statement = delete(table.table).where(table.key.in_(keys), *table.of_tenant(ctx.tenant))
    if ctx.connection.execute(statement).rowcount != len(keys):
        raise _gone(keys[0])


def _update_lines(
    ctx: WriteContext, table: RowTable, rows: Sequence[tuple[str, str, dict[str, Any]]]
) -> None:
    batches: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for key, parent, values in sorted(rows, key=lambda row: row[0]):
        bound = {f"v_{n}": values[column] for n, column in enumerate(sorted(values))}
        batches[tuple(sorted(values))].append({"k_": key, "p_": parent, **bound})
    for columns, parameters in batches.items():
        terms = [table.key == bindparam("k_"), *table.of_tenant(ctx.tenant)]
        if table.parent is not None:
            terms.append(table.parent == bindparam("p_"))
        new = {c: bindparam(f"v_{n}", type_=table.named(c).type) for n, c in enumerate(columns)}
        done = ctx.connection.execute(update(table.table).where(*terms).values(new), parameters)
        if done.rowcount != len(parameters):
            raise _gone(parameters[0]["k_"])


def _gone(key: str) -> Refused:
    return Refused(
        ErrorCode.VERSION_CONFLICT,
        {"line": key},
        text={
            "zh": f"明细行（{key}）已不存在，单据在您看到之后已被修改",
            "en": f"Line {key} is gone: the record has changed since you saw it",
        },
    )
