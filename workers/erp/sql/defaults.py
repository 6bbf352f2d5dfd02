"""Values a caller left out of a new row: constants, now, today, the maker, or copied from a chosen reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Column, Connection, select

from staging.contracts.form import Default, FieldType, FormField
from staging.domain.canonical import utc_text
from staging.domain.identity import Actor
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.coerce import BadValue, coerce
from workers.erp.sql.values import to_json


@dataclass(frozen=True, slots=True)
class _Copy:
    """``node.field`` takes ``name`` of the record ``key`` of ``form``."""

    node: Node
    field: FormField
    form: str
    key: str
    name: str


class Defaults:
    """``now`` aware UTC, ``today`` the tenant's local date."""

    def __init__(
        self, connection: Connection, tables: CatalogueTables, actor: Actor, now: datetime, today: date
    ) -> None:
        self._connection, self._tables, self._actor = connection, tables, actor
        self._now, self._today = now, today

    def fill(self, nodes: Iterable[Node]) -> list[Node]:
        """Fill what can be filled now in the added rows among ``nodes``; returns the rows that got a value.

        Call it again after resolving references: a copy needs its reference resolved, which may itself be a default.
        """
        filled: list[Node] = []
        copies: list[_Copy] = []
        for node in nodes:
            if node.action != "add":
                continue
            for field in node.fields.values():
                if field.default is None or field.name in node.new:
                    continue
                if field.default.copy_from:
                    copies += self._copy(node, field, field.default.copy_from)
                else:
                    node.new[field.name] = self._constant(field, field.default)
                    filled.append(node)
        return filled + self._copied(copies)

    def _constant(self, field: FormField, default: Default) -> Any:
        if default.now:
            return utc_text(self._now.replace(microsecond=0))
        if default.today:
            return self._today.isoformat()
        return self._actor.user_id if default.maker else coerce(field, default.value)

    def _copy(self, node: Node, field: FormField, copy_from: str) -> list[_Copy]:
        name, _, wanted = copy_from.partition(".")
        at: Node | None = node
        while at is not None and name not in at.fields:
            at = at.upper
        reference = at.fields[name].reference if at else None
        key = at.value(name) if at else None
        return [_Copy(node, field, reference.form, key, wanted)] if reference and key is not None else []

    def _copied(self, copies: Sequence[_Copy]) -> list[Node]:
        by_form: dict[str, list[_Copy]] = defaultdict(list)
        for copy in copies:
            by_form[copy.form].append(copy)
        filled = []
        for form_id, ones in by_form.items():
            rows = self._rows(form_id, ones)
            for copy in ones:
                value = _fitted(copy.field, rows.get(copy.key, {}).get(copy.name))
                if value is not None:
                    copy.node.new[copy.field.name] = value
                    filled.append(copy.node)
        return filled

    def _rows(self, form_id: str, copies: Sequence[_Copy]) -> dict[str, dict[str, Any]]:
        master = self._tables.master(form_id)
        names = sorted({copy.name for copy in copies})
        keys = sorted({copy.key for copy in copies})
        columns: list[Column[Any]] = [master.key, *(master.column(n) for n in names)]
        statement = select(*columns).where(master.key.in_(keys), *master.of_tenant(self._actor.tenant))
        return {
            key: {n: to_json(master.fields[n], value) for n, value in zip(names, values, strict=True)}
            for key, *values in self._connection.execute(statement)
        }


def _fitted(field: FormField, value: Any) -> Any:
    """``value`` if it fits ``field``; a copy that does not (too long, too many decimals) is left out."""
    if value is None or field.type is FieldType.REFERENCE:
        return value
    try:
        return coerce(field, value)
    except BadValue:
        return None
