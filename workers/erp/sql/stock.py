"""Stock: rows locked in one order, checked exactly, written back. Below zero, or into what is promised, is refused.

One way on all engines: lock (``FOR UPDATE``; on SQLite the transaction already holds the only write lock), check with
Decimals, write the new amounts. Arithmetic in SQL would be exact on servers only: SQLite adds in binary floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Table, bindparam, select, tuple_, update
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.sql.dml import Insert

from staging.contracts.form import Form, StockEffect
from staging.domain.canonical import decimal_text
from staging.domain.errors import Refused, rule
from staging.storage.dialect import is_mysql
from workers.erp.sql.catalogue_tables import RowTable
from workers.erp.sql.context import WriteContext, new_key
from workers.erp.sql.numbering import hold

Place = tuple[str, str]  # product id, warehouse id
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Move:
    """A change at one place: ``quantity`` comes (or, negative, goes); ``reserved`` is promised (or released)."""

    product: str
    warehouse: str
    quantity: Decimal = ZERO
    reserved: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class Level:
    """What lies at a place, and how much of it is promised to somebody."""

    quantity: Decimal = ZERO
    reserved: Decimal = ZERO

    @property
    def free(self) -> Decimal:
        return self.quantity - self.reserved


def move_stock(ctx: WriteContext, form: Form, moves: Iterable[Move]) -> dict[Place, tuple[Level, Level]]:
    """Apply ``moves`` to the stock table of ``form``'s stock effect; returns (before, after) by (product, warehouse).

    All or nothing: raises business_rule naming product, have and need, before anything is written.
    """
    wanted = _added_up(moves)
    if not wanted:
        return {}
    effect = _effect(form)
    table = ctx.tables.stock(form.id)
    incoming = [place for place, move in wanted.items() if move.quantity > 0]
    if incoming and len(_rows(ctx, form, effect, table, incoming, lock=False)) < len(incoming):
        # Before any row is locked: who held rows and waited here would deadlock with one who does the reverse.
        hold(ctx.connection, ctx.tables.catalogue.number_table, ctx.tenant, [f"stock:{table.name}"])
    rows = _rows(ctx, form, effect, table, list(wanted))
    missing = [place for place in incoming if place not in rows]
    if missing:
        rows |= _created(ctx, form, effect, table, missing)
    changes = _changes(ctx, form, wanted, rows)
    _write(ctx, form, effect, table, {rows[p][0]: after for p, (_, after) in changes.items() if p in rows})
    return changes


def look_at_stock(ctx: WriteContext, form: Form, moves: Iterable[Move]) -> dict[Place, tuple[Level, Level]]:
    """What ``move_stock`` would return, or refuse, at this moment; nothing is locked or written."""
    wanted, effect = _added_up(moves), _effect(form)
    rows = _rows(ctx, form, effect, ctx.tables.stock(form.id), list(wanted), lock=False) if wanted else {}
    return _changes(ctx, form, wanted, rows)


def _changes(
    ctx: WriteContext, form: Form, wanted: Mapping[Place, Move], rows: Mapping[Place, tuple[str, Level]]
) -> dict[Place, tuple[Level, Level]]:
    levels = {place: rows[place][1] if place in rows else Level() for place in wanted}
    return {place: (level, _after(ctx, form, wanted[place], level)) for place, level in levels.items()}


def examine_moves(effect: StockEffect, lines: Sequence[Mapping[str, Any]], sign: int) -> list[Move]:
    """What ``lines`` move when examined (``sign`` 1), or when that is taken back (-1).

    A line by public field names, plus its ``fulfils_column`` under that name. A line that fulfils a promise uses the
    promise up along with the quantity, and gives both back. business_rule for a line without product or warehouse.
    """
    moves = []
    for line in lines:
        if not line[effect.product] or not line[effect.warehouse]:
            raise rule(
                "明细行缺少产品或仓库，无法过账库存",
                "A line has no product or no warehouse, so no stock can move",
            )
        quantity = sign * effect.direction * (line[effect.quantity] or ZERO)
        fulfils = effect.reserved_column and effect.fulfils_column and line[effect.fulfils_column]
        reserved = quantity if fulfils else ZERO
        moves.append(Move(str(line[effect.product]), str(line[effect.warehouse]), quantity, reserved))
    return moves


def _effect(form: Form) -> StockEffect:
    if form.stock is None:
        raise LookupError(f"form {form.id} has no stock effect")
    return form.stock


def _added_up(moves: Iterable[Move]) -> dict[Place, Move]:
    """One move per place, in the order in which rows are locked."""
    total: dict[Place, Move] = {}
    for move in moves:
        place = (move.product, move.warehouse)
        so_far = total.get(place, Move(*place))
        total[place] = Move(*place, so_far.quantity + move.quantity, so_far.reserved + move.reserved)
    return {place: total[place] for place in sorted(total)}


def _rows(
    ctx: WriteContext,
    form: Form,
    effect: StockEffect,
    table: Table,
    places: Sequence[Place],
    *,
    lock: bool = True,
) -> dict[Place, tuple[str, Level]]:
    """Key and level of the rows that exist, locked in order. Refuses a place that has several rows."""
    c = table.c
    product, warehouse, quantity = (
        c[effect.product_column],
        c[effect.warehouse_column],
        c[effect.quantity_column],
    )
    columns = [c[effect.key], product, warehouse, quantity]
    if effect.reserved_column:
        columns.append(c[effect.reserved_column])
    statement = (
        select(*columns)
        .where(*_of_tenant(ctx, form, table), tuple_(product, warehouse).in_(places))
        .order_by(product, warehouse)
    )
    if lock:
        statement = statement.with_for_update()
    rows: dict[Place, tuple[str, Level]] = {}
    for key, product_id, warehouse_id, amount, *reserved in ctx.connection.execute(statement):
        place = (product_id, warehouse_id)
        if place in rows:
            name = _product_name(ctx, form, product_id)
            raise rule(
                f"产品“{name}”在同一仓库有多条库存记录，无法自动处理",
                f'Product "{name}" has several stock rows in one warehouse',
                product=product_id,
            )
        rows[place] = (key, Level(amount or ZERO, (reserved[0] if reserved else ZERO) or ZERO))
    return rows


def _created(
    ctx: WriteContext, form: Form, effect: StockEffect, table: Table, places: Sequence[Place]
) -> dict[Place, tuple[str, Level]]:
    """Insert empty rows for ``places``, which are not there, and lock them.

    Two of us are kept apart by the counter row that ``move_stock`` holds, whether or not the ERP has a unique index
    here; where it has one, a row that the ERP itself inserts at the same moment is taken instead of ours.
    """
    new: list[dict[str, Any]] = [
        {
            effect.key: new_key(),
            form.tenant.brands: ctx.tenant.brands_id,
            form.tenant.subsidiary: ctx.tenant.subsidiary_id,
            effect.product_column: product,
            effect.warehouse_column: warehouse,
            effect.quantity_column: ZERO,
            **({effect.reserved_column: ZERO} if effect.reserved_column else {}),
        }
        for product, warehouse in places
    ]
    ctx.connection.execute(_insert_unless_there(ctx, table, effect), new)
    key = table.c[effect.key]
    ours = (
        ctx.connection.execute(select(key).where(key.in_([row[effect.key] for row in new]))).scalars().all()
    )
    if len(ours) == len(new):  # our own new rows are locked as they are
        return {place: (row[effect.key], Level()) for place, row in zip(places, new, strict=True)}
    return _rows(ctx, form, effect, table, places)


def _insert_unless_there(ctx: WriteContext, table: Table, effect: StockEffect) -> Insert:
    dialect = ctx.connection.dialect
    if is_mysql(dialect):
        # An upsert that changes nothing: unlike INSERT IGNORE it hides no other error.
        same = table.c[effect.quantity_column]
        return mysql_insert(table).on_duplicate_key_update({effect.quantity_column: same})
    insert = pg_insert if dialect.name == "postgresql" else sqlite_insert
    return insert(table).on_conflict_do_nothing()


def _after(ctx: WriteContext, form: Form, move: Move, before: Level) -> Level:
    after = Level(before.quantity + move.quantity, before.reserved + move.reserved)
    if after.reserved < 0:
        words = (
            "产品“{name}”预留数量不足：已预留 {have}，需要 {need}",
            'Not enough of product "{name}" is reserved: {have}, needed {need}',
        )
        raise _short(ctx, form, move.product, before.reserved, -move.reserved, *words)
    taken = move.reserved - move.quantity
    if after.free < 0 and taken > 0:
        words = (
            "产品“{name}”库存不足：可用 {have}，需要 {need}",
            'Not enough stock of product "{name}": available {have}, needed {need}',
        )
        raise _short(ctx, form, move.product, before.free, taken, *words)
    return after


def _short(
    ctx: WriteContext, form: Form, product: str, have: Decimal, need: Decimal, zh: str, en: str
) -> Refused:
    said = {"name": _product_name(ctx, form, product), "have": decimal_text(have), "need": decimal_text(need)}
    return rule(zh.format(**said), en.format(**said), product=product, have=said["have"], need=said["need"])


def _write(
    ctx: WriteContext, form: Form, effect: StockEffect, table: Table, levels: Mapping[str, Level]
) -> None:
    changed: dict[str, Any] = {effect.quantity_column: bindparam("q")}
    if effect.reserved_column:
        changed[effect.reserved_column] = bindparam("r")
    statement = (
        update(table)
        .where(table.c[effect.key] == bindparam("k"), *_of_tenant(ctx, form, table))
        .values(changed)
    )
    rows = [
        {"k": key, "q": level.quantity, **({"r": level.reserved} if effect.reserved_column else {})}
        for key, level in levels.items()
    ]
    if rows:
        ctx.connection.execute(statement, rows)


def _of_tenant(ctx: WriteContext, form: Form, table: Table) -> list[Any]:
    tenancy = form.tenant
    return [
        table.c[tenancy.brands] == ctx.tenant.brands_id,
        table.c[tenancy.subsidiary] == ctx.tenant.subsidiary_id,
    ]


def _product_name(ctx: WriteContext, form: Form, product_id: str) -> str:
    """What a person calls the product; its id if nothing better is known. Read only when refusing."""
    effect = _effect(form)
    line: RowTable = ctx.tables.master(form.id).children[effect.child]
    reference = line.fields[effect.product].reference
    if reference is None:
        return product_id
    master = ctx.tables.master(reference.form)
    names = reference.names or reference.display or ctx.tables.form(reference.form).title
    shown = [master.column(n) for n in names if n in master.fields]
    if not shown:
        return product_id
    found = ctx.connection.execute(
        select(*shown).where(master.key == product_id, *master.of_tenant(ctx.tenant))
    ).first()
    return " ".join(str(part) for part in found if part) if found else product_id
