"""Checks of what ties forms together: generate, stock, locks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from staging.contracts.form import Child, FieldType, Form, FormField, Generate
from workers.erp.checks.problem import Problem
from workers.erp.checks.scope import Scope, scopes

_NUMERIC = (FieldType.DECIMAL, FieldType.INTEGER)


def check_generate(form: Form, forms: Mapping[str, Form]) -> Iterator[Problem]:
    """Source, lines, maps and write-back of each way to generate ``form``."""
    sources: set[str] = set()
    for generate in form.generate:
        path = f"forms[{form.id}].generate[{generate.source}]"
        if generate.source in sources:
            yield Problem(path, "来源表单重复", "this source form comes twice")
        sources.add(generate.source)
        source = forms.get(generate.source)
        target_child = form.child(generate.target_child)
        source_child = source.child(generate.source_child) if source else None
        for name, found, key in (
            (generate.source, source, "source"),
            (f"{generate.source}.{generate.source_child}", source_child, "source_child"),
            (generate.target_child, target_child, "target_child"),
        ):
            if found is None:
                yield Problem(f"{path}.{key}", f"没有 {name}", f"there is no {name}")
        if source is None or source_child is None or target_child is None:
            continue
        yield from _maps(f"{path}.master", generate.master, form, source)
        yield from _maps(f"{path}.lines", generate.lines, target_child, source_child)
        yield from _quantity(path, generate, target_child, source_child)


def _maps(
    path: str, names: Mapping[str, str], target: Form | Child, source: Form | Child
) -> Iterator[Problem]:
    for to, origin in names.items():
        into, out_of = _field(target, to), _field(source, origin)
        if into is None or into.computed:
            yield Problem(f"{path}.{to}", f"目标没有可写字段 {to}", f"the target has no field {to} to fill")
        if out_of is None:
            yield Problem(f"{path}.{to}", f"来源没有字段 {origin}", f"the source has no field {origin}")


def _quantity(path: str, generate: Generate, target: Child, source: Child) -> Iterator[Problem]:
    quantity = _field(target, generate.quantity)
    if quantity is None or quantity.type not in _NUMERIC or not quantity.accepts_input:
        zh, en = (
            f"没有可写数值字段 {generate.quantity}",
            f"there is no writable numeric field {generate.quantity}",
        )
        yield Problem(f"{path}.quantity", zh, en)
    if generate.write_back is None:
        own = generate.lines.get(generate.quantity, generate.quantity)
        if _field(source, own) is None:
            yield Problem(f"{path}.quantity", f"来源没有字段 {own}", f"the source has no field {own}")
        return
    limit = _field(source, generate.write_back.limit)
    if limit is None or limit.type not in _NUMERIC:
        name = generate.write_back.limit
        yield Problem(
            f"{path}.write_back.limit", f"来源没有数值字段 {name}", f"the source has no numeric field {name}"
        )
    taken = next((f for f in source.fields if f.column == generate.write_back.taken), None)
    if taken and taken.accepts_input:
        zh, en = f"字段 {taken.name} 须 writable: false", f"field {taken.name} needs writable: false"
        yield Problem(f"{path}.write_back.taken", zh, en)


def check_stock(form: Form) -> Iterator[Problem]:
    """Fields a stock effect moves by."""
    effect = form.stock
    if effect is None:
        return
    path = f"forms[{form.id}].stock"
    child = form.child(effect.child)
    if child is None:
        yield Problem(f"{path}.child", f"没有 {effect.child}", f"there is no {effect.child}")
        return
    for key in ("product", "warehouse", "quantity"):
        name = getattr(effect, key)
        field = _field(child, name)
        wanted = field is not None and (key != "quantity" or field.type is FieldType.DECIMAL)
        if not wanted:
            zh, en = f"明细没有合适的字段 {name}", f"the lines have no fitting field {name}"
            yield Problem(f"{path}.{key}", zh, en)
    if form.states.examined is None:
        yield Problem(
            path, "库存在审核时变动，须有 examined", "stock moves on examine: states.examined is needed"
        )


def check_locks(form: Form, forms: Mapping[str, Form]) -> Iterator[Problem]:
    """``lock_when_referenced_by``: each entry is a field that can hold this form's key."""
    for entry in form.lock_when_referenced_by:
        path = f"forms[{form.id}].lock_when_referenced_by"
        form_id, *inner = entry.split(".")
        other = forms.get(form_id)
        field = _by_path(other, inner) if other else None
        if field is None:
            yield Problem(path, f"没有字段 {entry}", f"there is no field {entry}")
        elif field.reference and field.reference.form != form.id:
            zh, en = f"{entry} 引用的是 {field.reference.form}", f"{entry} refers to {field.reference.form}"
            yield Problem(path, zh, en)


def _by_path(form: Form, inner: list[str]) -> FormField | None:
    if not inner:
        return None
    *children, name = inner
    level = _level(form, children)
    return level.field(name) if level else None


def _level(form: Form, children: list[str]) -> Scope | None:
    wanted = "".join(f".children[{child}]" for child in children)
    return next((s for s in scopes(form) if s.path == f"forms[{form.id}]{wanted}"), None)


def _field(of: Form | Child, name: str) -> FormField | None:
    return next((field for field in of.fields if field.name == name), None)
