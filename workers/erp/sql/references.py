"""Names → keys: a reference is given by id, by document number, or by exact name, always within the tenant.

Exact first; then, if nothing matches, ignoring case if that leaves one. Several matches are an error that lists them,
never a guess. All references to one form are looked up together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, func, or_, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import FieldType, Form, FormField, Reference
from staging.domain.identity import Tenant
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.problems import Problems
from workers.erp.sql.values import to_json

_BATCH = 200  # values per statement
_MOST_CANDIDATES = 10
_NEAR = 5
_NEAR_POOL = 50
_SEARCHES = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reference field of a row whose new value is still what the caller wrote."""

    node: Node
    field: FormField

    @property
    def raw(self) -> str:
        return str(self.node.new[self.field.name])

    @property
    def path(self) -> str:
        return self.node.at(self.field.name)


@dataclass(frozen=True, slots=True)
class Target:
    """A record that may be meant: the texts it goes by, and what a person is shown of it."""

    key: str
    names: tuple[str, ...]
    valid: bool
    shown: dict[str, Any]


def wanted_references(nodes: Iterable[Node]) -> list[Wanted]:
    """All filled reference fields of ``nodes``."""
    return [
        Wanted(node, node.fields[name])
        for node in nodes
        for name, value in node.new.items()
        if node.fields[name].type is FieldType.REFERENCE and value is not None
    ]


class References:
    """Resolves references of one tenant over one connection."""

    def __init__(
        self,
        connection: Connection,
        tables: CatalogueTables,
        tenant: Tenant,
        problems: Problems,
        *,
        ids_only: bool,
    ) -> None:
        self._connection, self._tables, self._tenant = connection, tables, tenant
        self._problems, self._ids_only = problems, ids_only
        self._searches = 0

    def resolve(self, wanted: Sequence[Wanted]) -> None:
        """Replace each value by the key of its record; what cannot be resolved goes to ``problems``."""
        by_form: dict[str, list[Wanted]] = defaultdict(list)
        for one in wanted:
            if one.field.reference:
                by_form[one.field.reference.form].append(one)
        for form_id, ones in by_form.items():
            form = self._tables.form(form_id)
            columns = sorted({name for one in ones for name in _name_fields(form, one.field.reference)})
            found = self._matching(form, columns, ones, sorted({one.raw for one in ones}), fold=False)
            folded: dict[str, Target] = {}
            if not self._ids_only:
                missing = sorted({one.raw for one in ones if not _exact(one, found)})
                folded = self._matching(form, columns, ones, missing, fold=True)
            for one in ones:
                self._settle(form, one, found, folded.values())

    def _settle(self, form: Form, one: Wanted, found: Mapping[str, Target], folded: Iterable[Target]) -> None:
        reference = one.field.reference
        matches = _exact(one, found)
        if self._ids_only:
            matches = [t for t in matches if t.key == one.raw]
        matches = matches or [t for t in folded if any(n.casefold() == one.raw.casefold() for n in t.names)]
        usable = [t for t in matches if t.valid or not (reference and reference.valid_only)]
        if len(usable) == 1:
            one.node.new[one.field.name] = usable[0].key
        elif usable:
            zh = f"“{one.raw}”对应{len(usable)}条{form.label.zh}，请用编号指明"
            en = f'"{one.raw}" matches {len(usable)} records of {form.label.en}: name one by its id'
            self._problems.add(
                one.path, ErrorCode.REFERENCE_AMBIGUOUS, {"zh": zh, "en": en}, _candidates(one, usable)
            )
        elif matches:
            zh, en = f"{form.label.zh}“{one.raw}”已作废", f'{form.label.en} "{one.raw}" is invalid'
            self._problems.add(one.path, ErrorCode.REFERENCE_NOT_FOUND, {"zh": zh, "en": en})
        else:
            zh, en = f"找不到{form.label.zh}“{one.raw}”", f'there is no {form.label.en} "{one.raw}"'
            near = self._near(form, one) if self._may_search() else []
            self._problems.add(
                one.path, ErrorCode.REFERENCE_NOT_FOUND, {"zh": zh, "en": en}, _candidates(one, near)
            )

    def _may_search(self) -> bool:
        """Looking for what is near takes statements; a payload of mistakes gets a few, not hundreds."""
        self._searches += 1
        return not self._ids_only and self._searches <= _SEARCHES

    def _matching(
        self, form: Form, names: Sequence[str], ones: Sequence[Wanted], texts: Sequence[str], *, fold: bool
    ) -> dict[str, Target]:
        master = self._tables.master(form.id)
        columns: list[Column[Any]] = [master.column(n) for n in names]
        found: dict[str, Target] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            if fold:
                terms: list[ColumnElement[bool]] = [
                    func.lower(c).in_([t.lower() for t in batch]) for c in columns
                ]
            else:
                terms = [master.key.in_(batch), *(() if self._ids_only else (c.in_(batch) for c in columns))]
            if terms:
                found |= {t.key: t for t in self._targets(form, names, ones, or_(*terms), None)}
        return found

    def _targets(
        self,
        form: Form,
        names: Sequence[str],
        ones: Sequence[Wanted],
        term: ColumnElement[bool],
        limit: int | None,
    ) -> list[Target]:
        master = self._tables.master(form.id)
        shown = sorted({n for one in ones for n in shown_fields(form, one.field.reference)})
        columns: list[Column[Any]] = [master.key, *(master.column(n) for n in (*names, *shown))]
        invalid = form.states.invalid
        if invalid:
            columns.append(master.named(invalid.column))
        statement = (
            select(*columns).where(*master.of_tenant(self._tenant), term).order_by(master.key).limit(limit)
        )
        targets = []
        for key, *rest in self._connection.execute(statement):
            values = dict(zip(shown, rest[len(names) :], strict=False))
            targets.append(
                Target(
                    key=key,
                    names=tuple(str(n) for n in rest[: len(names)] if n),
                    valid=not (invalid and rest[-1]),
                    shown={n: to_json(master.fields[n], v) for n, v in values.items()},
                )
            )
        return targets

    def _near(self, form: Form, one: Wanted) -> list[Target]:
        """A few records that look like it, for a person to choose from: by containing it, else by how it begins."""
        names = _name_fields(form, one.field.reference)
        master = self._tables.master(form.id)
        columns = [master.column(n) for n in names]
        if not columns or not one.raw.strip():
            return []
        raw = one.raw.strip()
        for part in dict.fromkeys((raw, raw[:4], raw[:2])):
            term = or_(*(c.contains(part, autoescape=True) for c in columns))
            pool = [t for t in self._targets(form, names, [one], term, _NEAR_POOL) if t.valid]
            if pool:
                return sorted(pool, key=lambda t: -_likeness(raw, t))[:_NEAR]
        return []


def shown_fields(form: Form, reference: Reference | None) -> list[str]:
    """Public fields of ``form`` by which a person tells its records apart: the reference's display, else the title."""
    number = [form.number.field] if form.number else []
    wanted = reference.display if reference else []
    chosen = wanted or [*number, *form.title] or (reference.names if reference else [])
    return list(dict.fromkeys(chosen))


def _name_fields(form: Form, reference: Reference | None) -> list[str]:
    number = [form.number.field] if form.number else []
    return list(dict.fromkeys([*number, *(reference.names if reference else [])]))


def _exact(one: Wanted, found: Mapping[str, Target]) -> list[Target]:
    """By key if one has it, else all that go by exactly this text."""
    by_key = found.get(one.raw)
    return [by_key] if by_key else [t for t in found.values() if one.raw in t.names]


def _likeness(raw: str, target: Target) -> float:
    return max(
        (SequenceMatcher(None, raw.casefold(), n.casefold()).ratio() for n in target.names), default=0.0
    )


def _candidates(one: Wanted, targets: Sequence[Target]) -> list[Mapping[str, Any]]:
    return [{"field": one.path, "id": t.key, **t.shown} for t in targets[:_MOST_CANDIDATES]]
