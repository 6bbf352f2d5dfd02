"""A level of a form, master or lines, as the checks see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from staging.contracts.form import Child, Form, FormField, Stamp, Tenancy


@dataclass(frozen=True, slots=True)
class Scope:
    """``path`` in the YAML; ``of``: the form or child; ``above``: the levels around a child, nearest first."""

    path: str
    form: Form
    of: Form | Child
    above: tuple[Scope, ...] = ()

    @property
    def fields(self) -> Mapping[str, FormField]:
        return {field.name: field for field in self.of.fields}

    def field(self, name: str) -> FormField | None:
        return self.fields.get(name)

    def field_path(self, field: FormField) -> str:
        return f"{self.path}.fields[{field.name}]"

    def flags(self) -> set[str]:
        """Columns of the form's states, which are yes or no."""
        if isinstance(self.of, Child):
            return set()
        return {stamp.column for stamp in (self.of.states.examined, self.of.states.invalid) if stamp}

    def system_columns(self) -> dict[str, str]:
        """Columns that only the system writes: column → what it is."""
        found = {self.of.key: "key"}
        found.update(_tenant(self.of.tenant))
        if isinstance(self.of, Child):
            found[self.of.parent] = "parent"
            if self.of.line_no:
                found[self.of.line_no] = "line_no"
            return found
        form = self.of
        for stamp, word in (
            (form.maker, "maker"),
            (form.modified, "modified"),
            (form.states.examined, "examined"),
            (form.states.invalid, "invalid"),
        ):
            found.update(_stamp(stamp, word))
        return found


def scopes(form: Form) -> Iterator[Scope]:
    """The form's master level and all line levels below it."""
    master = Scope(f"forms[{form.id}]", form, form)
    yield master
    yield from _below(master)


def _below(scope: Scope) -> Iterator[Scope]:
    for child in scope.of.children:
        below = Scope(f"{scope.path}.children[{child.name}]", scope.form, child, (scope, *scope.above))
        yield below
        yield from _below(below)


def _tenant(tenancy: Tenancy | None) -> dict[str, str]:
    return {tenancy.brands: "tenant", tenancy.subsidiary: "tenant"} if tenancy else {}


def _stamp(stamp: Stamp | None, word: str) -> dict[str, str]:
    if stamp is None:
        return {}
    return {column: word for column in (stamp.column, stamp.by, stamp.at) if column}
