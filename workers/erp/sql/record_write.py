"""A whole record: created with its lines, updated, deleted. Used for forms and by command handlers alike.

Payloads are normalized: public field names to JSON-ready values, references already ids, lines under their child's name
(see ``children_write``). Computed fields are worked out here, whatever the payload says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlalchemy import delete, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused, rule
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.children_write import (
    LineChanges,
    NewLine,
    Payload,
    delete_lines,
    insert_lines,
    insert_rows,
    merge_lines,
    row_values,
    with_totals,
    write_changes,
)
from workers.erp.sql.context import WriteContext, new_key
from workers.erp.sql.generate import (
    check_covers,
    move_taken,
    quantity_field,
    source_line_columns,
    taken_columns,
)
from workers.erp.sql.referenced_by import check_not_referenced
from workers.erp.sql.state_write import guarded_update, set_state
from workers.erp.sql.states import REQUIRED, check, guard, state_columns
from workers.erp.sql.totals import computed_values
from workers.erp.sql.tree import Line, all_keys, load_lines
from workers.erp.sql.values import to_sql

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Links:
    """What ties a generated record to its source: columns of the master, and of each line of ``child`` in order."""

    master: Mapping[str, Any]
    child: str
    lines: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Created:
    """The new record's key and, where the form numbers, its document number."""

    key: str
    number: str | None


@dataclass(frozen=True, slots=True)
class New:
    """A record to create. ``columns``: further master columns by SQL name (a handler's own stamps)."""

    ctx: WriteContext
    payload: Payload
    links: Links | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def create_record(
    ctx: WriteContext,
    form: Form,
    payload: Payload,
    *,
    links: Links | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Created:
    """``create_records`` of one."""
    (created,) = create_records(form, [New(ctx, payload, links, columns or {})])
    return created


def create_records(form: Form, news: Sequence[New]) -> list[Created]:
    """Insert masters, lines and lines below, of one tenant in one transaction, numbered in this order; few statements a
    table, however many records. Numbers are allocated last of all but the inserts.
    """
    ctx = news[0].ctx
    master = ctx.tables.master(form.id)
    payloads = [with_totals(master, new.payload) for new in news]
    rows = [_master_row(form, master, new, full) for new, full in zip(news, payloads, strict=True)]
    numbers = ctx.next_numbers(form, master, len(news))
    if not numbers:
        return [created for new in news for created in create_records(form, [new])]
    for row, number in zip(rows, numbers, strict=True):
        if form.number and number is not None:
            row[master.fields[form.number.field].column] = number
    keys = [row[master.key.name] for row in rows]
    insert_rows(ctx, master, rows)
    for name, table in master.children.items():
        lines = [
            NewLine(key, n, line, tied)
            for key, new, full in zip(keys, news, payloads, strict=True)
            for n, (line, tied) in enumerate(_tied(new.links, name, full), 1)
        ]
        insert_lines(ctx, table, lines)
    return [Created(key, number) for key, number in zip(keys, numbers, strict=True)]


def _master_row(form: Form, master: RowTable, new: New, full: Payload) -> dict[str, Any]:
    row: dict[str, Any] = {column: v for column, v in row_values(master, full).items() if v is not None}
    for state in (form.states.examined, form.states.invalid):
        if state:
            row[state.column] = 0
    row.update(new.columns)
    row.update(new.links.master if new.links else {})
    row.update(new.ctx.made_by(form.maker))
    row.update(master.tenant_values(new.ctx.tenant))
    row[master.key.name] = new_key()
    return row


def _tied(links: Links | None, child: str, full: Payload) -> Iterable[tuple[Payload, Mapping[str, Any]]]:
    """The lines of ``child``, each with its link columns."""
    lines = full.get(child) or ()
    if links is None or links.child != child:
        return ((line, {}) for line in lines)
    return zip(lines, links.lines, strict=True)


def update_record(ctx: WriteContext, form: Form, key: str, payload: Payload) -> None:
    """Change the given fields and lines, what is computed from them, and the modified stamp; nothing else.

    Raises record_not_found, state_conflict (examined or invalid), version_conflict for a line that is gone, and
    business_rule where a generated line would take more than its source has.
    """
    master = ctx.tables.master(form.id)
    before = _locked_master(ctx, form, master, key, REQUIRED[OpType.UPDATE])
    changes = LineChanges()
    sums: dict[str, Sequence[Mapping[str, Any]]] = {}
    for name, table in master.children.items():
        if name in payload:
            taken = taken_columns(ctx.tables, form, name)
            extra = [*source_line_columns(form, name), *taken]
            current = load_lines(ctx.connection, table, ctx.tenant, [key], extra=extra, lock=True)
            sums[name] = merge_lines(table, key, current, payload[name], changes)
            _check_count(form, name, len(sums[name]))
            for one in changes.touched[name]:
                check_covers(one.before, one.after, taken)
    _move_differences(ctx, form, changes)
    write_changes(ctx, changes)
    fields = master.fields
    given = {
        name: to_sql(fields[name], value)
        for name, value in payload.items()
        if name in fields and not fields[name].computed
    }
    after = before | given
    computed = computed_values(fields, after, sums)
    new = given | {name: value for name, value in computed.items() if value != before.get(name)}
    values = {fields[name].column: value for name, value in new.items()} | ctx.made_by(form.modified)
    if values:
        guarded_update(ctx, form, master, key, REQUIRED[OpType.UPDATE], values)


def delete_record(ctx: WriteContext, form: Form, key: str, *, physical: bool) -> None:
    """Set invalid, or with ``physical`` remove the rows from the bottom up. Gives back what its lines have taken."""
    master = ctx.tables.master(form.id)
    if not physical:
        set_state(ctx, form, master, key, OpType.DELETE)
        check_not_referenced(ctx.connection, ctx.tables, ctx.tenant, form, key)
        give_back_taken(ctx, form, key, -1)
        return
    _locked_master(ctx, form, master, key, REQUIRED[OpType.DELETE])
    check_not_referenced(ctx.connection, ctx.tables, ctx.tenant, form, key)
    give_back_taken(ctx, form, key, -1)
    for table in master.children.values():
        lines = load_lines(ctx.connection, table, ctx.tenant, [key], lock=True)
        for below, keys in all_keys(table, lines):
            delete_lines(ctx, below, keys)
    of_record = [master.key == key, *master.of_tenant(ctx.tenant)]
    statement = delete(master.table).where(*of_record, *guard(form, master, REQUIRED[OpType.DELETE]))
    if ctx.connection.execute(statement).rowcount != 1:
        raise Refused(ErrorCode.STATE_CONFLICT, {"form": form.id})


def give_back_taken(ctx: WriteContext, form: Form, key: str, sign: int) -> None:
    """For a generated record that becomes invalid (``sign`` -1) or valid again (1): adjust its source lines."""
    deltas: dict[str, Decimal] = {}
    for name, table in ctx.tables.master(form.id).children.items():
        links = source_line_columns(form, name)
        if not links:
            continue
        quantity = quantity_field(form, name)
        for line in load_lines(ctx.connection, table, ctx.tenant, [key], extra=links, deep=False):
            _add(deltas, line, links, sign * (line.values[quantity] or ZERO))
    move_taken(ctx, form, deltas)


def _move_differences(ctx: WriteContext, form: Form, changes: LineChanges) -> None:
    deltas: dict[str, Decimal] = {}
    for name, touched in changes.touched.items():
        links = source_line_columns(form, name)
        if not links:
            continue
        quantity = quantity_field(form, name)
        for one in touched:
            after = one.after[quantity] if one.after else None
            difference = (after or ZERO) - (one.before.values[quantity] or ZERO)
            _add(deltas, one.before, links, difference)
    move_taken(ctx, form, deltas)


def _add(deltas: dict[str, Decimal], line: Line, links: Sequence[str], amount: Decimal) -> None:
    source = next((line.extra[column] for column in links if line.extra[column]), None)
    if source:
        deltas[source] = deltas.get(source, ZERO) + amount


def _locked_master(
    ctx: WriteContext, form: Form, master: RowTable, key: str, required: Any
) -> dict[str, Any]:
    """The record's values by public name, row locked, state checked."""
    names, flags = list(master.fields), state_columns(form)
    statement = (
        select(*(master.column(n) for n in names), *map(master.named, flags))
        .where(master.key == key, *master.of_tenant(ctx.tenant))
        .with_for_update()
    )
    row = ctx.connection.execute(statement).first()
    if row is None:
        raise Refused(ErrorCode.RECORD_NOT_FOUND, {"record": key})
    check(form, dict(zip(flags, row[len(names) :], strict=True)), required)
    return dict(zip(names, row, strict=False))


def _check_count(form: Form, name: str, count: int) -> None:
    """Two updates may each have been right about the number of lines left; the second to run is not."""
    child = form.child(name)
    if child and not child.min_lines <= count <= child.max_lines:
        raise rule(
            f"{child.label.zh}应有{child.min_lines}至{child.max_lines}行，现为{count}行",
            f"{child.label.en} must have {child.min_lines} to {child.max_lines} lines, not {count}",
        )
