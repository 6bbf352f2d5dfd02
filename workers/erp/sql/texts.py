"""What a person reads: names for references, labels for choices, titles of records, in the actor's language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, select

from staging.contracts.form import FieldType, Form, FormField
from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.values import to_json

_BATCH = 500
_LEVELS = 2  # a title may name a record whose own title names another; no deeper


class Texts:
    """Collect references with ``want`` (or let ``of_nodes`` do it), ``load`` them once, then ask."""

    def __init__(self, connection: Connection, tables: CatalogueTables, tenant: Tenant, locale: str) -> None:
        self._connection, self._tables, self._tenant, self.locale = connection, tables, tenant, locale
        self._wanted: dict[str, set[str]] = defaultdict(set)
        self._titles: dict[tuple[str, str], str] = {}

    def want(self, field: FormField, value: Any) -> None:
        """Note that the text of ``value`` will be asked for."""
        if field.reference and isinstance(value, str):
            self.want_record(field.reference.form, value)

    def want_record(self, form_id: str, key: str) -> None:
        if (form_id, key) not in self._titles:
            self._wanted[form_id].add(key)

    def record(self, form_id: str, key: str) -> str:
        """The title of a record that was wanted and loaded; its key if there is none."""
        return self._titles.get((form_id, key), key)

    def want_nodes(self, nodes: Iterable[Node]) -> None:
        """All references of these rows, before and after."""
        for node in nodes:
            for name, field in node.fields.items():
                self.want(field, node.old.get(name))
                self.want(field, node.new.get(name))

    def want_title(self, form: Form, values: Mapping[str, Any]) -> None:
        for field in _title_fields(form):
            self.want(field, values.get(field.name))

    def load(self) -> None:
        """One statement per form for what is wanted and not known yet."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for _ in range(_LEVELS):
            wanted, self._wanted = self._wanted, defaultdict(set)
            for form_id, keys in wanted.items():
                form = self._tables.form(form_id)
                for key, values in self._rows(form, sorted(keys)).items():
                    rows[form_id, key] = values
                    self.want_title(form, values)
        # The inner titles first: they were read last.
        for (form_id, key), values in reversed(rows.items()):
            self._titles[form_id, key] = self.title(self._tables.form(form_id), key, values)

    def title(self, form: Form, key: str, values: Mapping[str, Any]) -> str:
        """How a person calls the record: its title fields, else its key."""
        parts = [self.of(field, values.get(field.name)) for field in _title_fields(form)]
        return " ".join(part for part in parts if part) or key

    def of(self, field: FormField, value: Any) -> str:
        """``value`` as a person reads it; "" for nothing."""
        if value is None:
            return ""
        match field.type:
            case FieldType.BOOLEAN:
                return ("是" if value else "否") if self.locale == "zh" else ("yes" if value else "no")
            case FieldType.CHOICE:
                return next(
                    (c.label.text(self.locale) for c in field.choices if c.value == value), str(value)
                )
            case FieldType.REFERENCE if field.reference:
                return self.record(field.reference.form, str(value))
            case FieldType.DATETIME:
                return str(value).replace("T", " ").replace("Z", " UTC")
            case _:
                return str(value)

    def _rows(self, form: Form, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        master = self._tables.master(form.id)
        names = [field.name for field in _title_fields(form)]
        columns: list[Column[Any]] = [master.key, *(master.column(n) for n in names)]
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(keys), _BATCH):
            terms = [master.key.in_(keys[start : start + _BATCH]), *master.of_tenant(self._tenant)]
            for key, *values in self._connection.execute(select(*columns).where(*terms)):
                found[key] = {n: to_json(master.fields[n], v) for n, v in zip(names, values, strict=True)}
        return found


def _title_fields(form: Form) -> list[FormField]:
    names = form.title or ([form.number.field] if form.number else [])
    return [field for name in names if (field := form.field(name))]
