"""Generate: a document from chosen lines of another, and the quantity so taken kept on the source lines.

Concurrent generates meet at the source record, which is locked first, then its lines in key order; so what is left of a
line is checked against what is, exactly, and no two can take the same rest (SQLite: the one write lock does that).
Voiding or deleting what was generated gives the quantity back, changing a line's quantity moves the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form, Generate
from staging.domain.canonical import decimal_text
from staging.domain.errors import Refused, rule
from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.context import WriteContext
from workers.erp.sql.states import GENERATE_SOURCE, check, state_columns
from workers.erp.sql.tree import Line, load_lines
from workers.erp.sql.values import exact

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Source:
    """The source record of a generate as read: key, values by public name, the chosen lines in the order chosen.

    ``left``: by line key what may still be taken; empty where nothing is written back.
    """

    generate: Generate
    key: str
    values: dict[str, Any]
    lines: list[Line]
    left: dict[str, Decimal]


def generate_from(form: Form, source_form: str) -> Generate:
    """How ``form`` is generated from ``source_form``; form_not_found if it is not."""
    found = next((g for g in form.generate if g.source == source_form), None)
    if found is None:
        raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": source_form})
    return found


def read_source(
    connection: Connection,
    tables: CatalogueTables,
    tenant: Tenant,
    generate: Generate,
    source_ref: Mapping[str, Any],
    *,
    lock: bool,
) -> Source:
    """Read (``lock``: and lock) the record and chosen lines of ``{"record": key, "lines": [{"id": key, …}]}``.

    Raises record_not_found for a record or line that is not there, state_conflict for one not examined or invalid.
    """
    form, master = tables.form(generate.source), tables.master(generate.source)
    key = str(source_ref["record"])
    names, flags = list(master.fields), state_columns(form)
    statement = select(*(master.column(n) for n in names), *map(master.named, flags)).where(
        master.key == key, *master.of_tenant(tenant)
    )
    found = connection.execute(statement.with_for_update() if lock else statement).first()
    if found is None:
        raise Refused(ErrorCode.RECORD_NOT_FOUND, {"record": key})
    check(form, dict(zip(flags, found[len(names) :], strict=True)), GENERATE_SOURCE)
    chosen = [str(line["id"]) for line in source_ref["lines"]]
    table = master.children[generate.source_child]
    taken = [generate.write_back.taken] if generate.write_back else []
    rows = {
        line.key: line
        for line in load_lines(
            connection, table, tenant, [key], keys=chosen, extra=taken, lock=lock, deep=False
        )
    }
    missing = next((k for k in chosen if k not in rows), None)
    if missing is not None:
        raise Refused(ErrorCode.RECORD_NOT_FOUND, {"record": missing})
    lines = [rows[k] for k in chosen]
    left = {line.key: _left(generate, line) for line in lines} if generate.write_back else {}
    return Source(generate, key, dict(zip(names, found, strict=False)), lines, left)


def take(ctx: WriteContext, source: Source, quantities: Sequence[Any]) -> None:
    """Write the quantities taken (one per chosen line, same order) back to the locked source lines."""
    if source.generate.write_back is None:
        return
    deltas: dict[str, Decimal] = {}
    for line, quantity in zip(source.lines, quantities, strict=True):
        deltas[line.key] = deltas.get(line.key, ZERO) + exact(quantity)
    _move(ctx, source.generate, source.lines, deltas)


def move_taken(ctx: WriteContext, form: Form, deltas: Mapping[str, Decimal]) -> None:
    """Change what generated lines of ``form`` have taken from their source lines: source line key → difference.

    Source lines that are gone are passed over when something is given back; taking from one is record_not_found.
    """
    open_deltas = {key: delta for key, delta in deltas.items() if delta}
    for generate in form.generate:
        if generate.write_back is None or generate.source_line is None or not open_deltas:
            continue
        rows = _locked_lines(ctx, generate, sorted(open_deltas))
        _move(ctx, generate, rows, open_deltas)
        for line in rows:
            del open_deltas[line.key]
    gone = next((key for key, delta in open_deltas.items() if delta > 0), None)
    if gone is not None:
        raise Refused(ErrorCode.RECORD_NOT_FOUND, {"record": gone})


def taken_columns(tables: CatalogueTables, form: Form, child: str) -> dict[str, str]:
    """Of lines that others are generated from: column of the quantity taken → public field that bounds it."""
    return {
        g.write_back.taken: g.write_back.limit
        for other in tables.forms.values()
        for g in other.generate
        if g.write_back and g.source == form.id and g.source_child == child
    }


def check_covers(line: Line, after: Mapping[str, Any] | None, taken: Mapping[str, str]) -> None:
    """business_rule if a source line (``after``; None: removed) would no longer cover what was taken from it."""
    for column, limit in taken.items():
        used = line.extra[column]
        left = exact(after[limit] or 0) if after else ZERO
        if used and exact(used) > left:
            raise rule(
                f"第{line.line_no}行已有 {decimal_text(exact(used))} 生成下游单据，不能少于该数量",
                f"{decimal_text(exact(used))} of line {line.line_no} is already on other documents; it cannot be less",
                line=line.key,
            )


def source_line_columns(form: Form, child: str) -> list[str]:
    """SQL names of the columns of ``child`` that keep the source line, where its quantity is written back."""
    return sorted(
        {g.source_line for g in form.generate if g.source_line and g.write_back and g.target_child == child}
    )


def quantity_field(form: Form, child: str) -> str:
    """The field of generated lines of ``child`` that says how much was taken."""
    return next(g.quantity for g in form.generate if g.target_child == child)


def _locked_lines(ctx: WriteContext, generate: Generate, keys: Sequence[str]) -> list[Line]:
    table = ctx.tables.master(generate.source).children[generate.source_child]
    write_back = generate.write_back
    if write_back is None:
        return []
    line_no = table.key if table.line_no is None else table.line_no
    statement = (
        select(table.key, line_no, table.named(write_back.taken), table.column(write_back.limit))
        .where(table.key.in_(keys), *table.of_tenant(ctx.tenant))
        .order_by(table.key)
        .with_for_update()
    )
    return [
        Line(key, "", n if isinstance(n, int) else 0, {write_back.limit: limit}, {write_back.taken: taken})
        for key, n, taken, limit in ctx.connection.execute(statement)
    ]


def _move(
    ctx: WriteContext, generate: Generate, lines: Sequence[Line], deltas: Mapping[str, Decimal]
) -> None:
    write_back = generate.write_back
    if write_back is None:
        return
    table = ctx.tables.master(generate.source).children[generate.source_child]
    rows = {}
    for line in lines:
        delta, left = deltas[line.key], _left(generate, line)
        if delta > left:
            raise rule(
                f"来源第{line.line_no}行可用数量不足：可用 {decimal_text(left)}，需要 {decimal_text(delta)}",
                f"Source line {line.line_no} has {decimal_text(left)} left, needed {decimal_text(delta)}",
                line=line.key,
                have=decimal_text(left),
                need=decimal_text(delta),
            )
        rows[line.key] = max(ZERO, _taken(generate, line) + delta)
    column = table.named(write_back.taken)
    statement = (
        update(table.table)
        .where(table.key == bindparam("k_"), *table.of_tenant(ctx.tenant))
        .values({column.name: bindparam("t_", type_=column.type)})
    )
    if rows:
        ctx.connection.execute(statement, [{"k_": k, "t_": rows[k]} for k in sorted(rows)])


def _taken(generate: Generate, line: Line) -> Decimal:
    taken = line.extra[generate.write_back.taken] if generate.write_back else None
    return exact(taken) if taken is not None else ZERO


def _left(generate: Generate, line: Line) -> Decimal:
    limit = line.values[generate.write_back.limit] if generate.write_back else None
    return (exact(limit) if limit is not None else ZERO) - _taken(generate, line)
