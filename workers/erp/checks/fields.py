"""Checks of the fields of one level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from staging.contracts.form import Child, Default, FieldType, Form, FormField
from workers.erp.checks.problem import Problem
from workers.erp.checks.scope import Scope
from workers.erp.sql.coerce import BadValue, coerce

_RESERVED = {"id", "remove"}  # what a line's own keys are called in an update
_NUMERIC = (FieldType.DECIMAL, FieldType.INTEGER)
_TEXTUAL = (FieldType.STRING, FieldType.TEXT)


def check_fields(scope: Scope, forms: Mapping[str, Form]) -> Iterator[Problem]:
    """Names, columns, references, defaults and totals of ``scope``'s fields."""
    yield from _names(scope)
    system = scope.system_columns()
    columns: dict[str, str] = {}
    for field in scope.of.fields:
        path = scope.field_path(field)
        if field.column in columns:
            other = columns[field.column]
            yield Problem(f"{path}.column", f"与字段 {other} 同列", f"the same column as field {other}")
        columns[field.column] = field.name
        if field.column in system and field.accepts_input:
            word = system[field.column]
            zh, en = f"系统列（{word}）须 writable: false", f"a system column ({word}) needs writable: false"
            yield Problem(f"{path}.column", zh, en)
        yield from _limits(field, path)
        yield from _reference(field, path, forms)
        if field.default:
            yield from _default(scope, field, field.default, f"{path}.default", forms)
        if field.computed:
            yield from _computed(scope, field, f"{path}.computed")
        elif field.required and not _can_be_filled(scope, field):
            zh, en = "必填但无法填写", "required, but nothing can ever fill it"
            yield Problem(f"{path}.required", zh, en)
    yield from _cycles(scope)


def _names(scope: Scope) -> Iterator[Problem]:
    names: set[str] = set()
    for name in [*(f.name for f in scope.of.fields), *(c.name for c in scope.of.children)]:
        if name in names:
            yield Problem(f"{scope.path}.{name}", "名称重复", "this name comes twice")
        if name in _RESERVED:
            yield Problem(f"{scope.path}.{name}", "保留名称", "this name is reserved")
        names.add(name)
    if isinstance(scope.of, Child):
        for name in scope.of.unique:
            if scope.field(name) is None:
                yield Problem(f"{scope.path}.unique", f"没有字段 {name}", f"there is no field {name}")
        if scope.of.min_lines > scope.of.max_lines:
            yield Problem(f"{scope.path}.min_lines", "大于 max_lines", "is above max_lines")


def _limits(field: FormField, path: str) -> Iterator[Problem]:
    if field.minimum is not None and field.maximum is not None and field.minimum > field.maximum:
        yield Problem(f"{path}.minimum", "大于 maximum", "is above maximum")
    if field.decimals is not None and field.decimals > field.precision:
        yield Problem(f"{path}.decimals", "大于 precision", "is above precision")
    values = [choice.value for choice in field.choices]
    if len({type(v) for v in values}) > 1 or len(set(values)) != len(values):
        yield Problem(f"{path}.choices", "值须同类型且不重复", "values are of one type and differ")


def _reference(field: FormField, path: str, forms: Mapping[str, Form]) -> Iterator[Problem]:
    if field.reference is None:
        return
    other = forms.get(field.reference.form)
    if other is None:
        zh, en = f"没有表单 {field.reference.form}", f"there is no form {field.reference.form}"
        yield Problem(f"{path}.reference.form", zh, en)
        return
    for key, names in (("names", field.reference.names), ("display", field.reference.display)):
        for name in names:
            named = other.field(name)
            if named is None:
                zh, en = f"{other.id} 没有字段 {name}", f"{other.id} has no field {name}"
                yield Problem(f"{path}.reference.{key}", zh, en)
            elif key == "names" and named.type not in _TEXTUAL:
                yield Problem(f"{path}.reference.names", f"{name} 不是文本", f"{name} is not text")


def _default(
    scope: Scope, field: FormField, default: Default, path: str, forms: Mapping[str, Form]
) -> Iterator[Problem]:
    kinds = [default.value is not None, default.now, default.today, default.maker, bool(default.copy_from)]
    if sum(kinds) != 1:
        yield Problem(
            path,
            "value、now、today、maker、copy 须有且仅有一个",
            "exactly one of value, now, today, maker, copy",
        )
    if field.computed:
        yield Problem(path, "计算字段没有默认值", "a computed field has no default")
    if default.value is not None:
        try:
            coerce(field, default.value)
        except BadValue as bad:
            yield Problem(f"{path}.value", bad.reason["zh"], bad.reason["en"])
    allowed = {"now": (FieldType.DATETIME,), "today": (FieldType.DATE,), "maker": (FieldType.STRING,)}
    for kind, types in allowed.items():
        if getattr(default, kind) and field.type not in types:
            zh, en = f"仅用于 {types[0]} 字段", f"is for {types[0]} fields only"
            yield Problem(f"{path}.{kind}", zh, en)
    if default.copy_from:
        yield from _copy(scope, field, default.copy_from, f"{path}.copy", forms)


def _copy(
    scope: Scope, field: FormField, copy_from: str, path: str, forms: Mapping[str, Form]
) -> Iterator[Problem]:
    name, _, wanted = copy_from.partition(".")
    around = (scope, *scope.above)
    via = next((f for f in (level.field(name) for level in around) if f), None)
    if via is None or via.reference is None:
        yield Problem(path, f"没有引用字段 {name}", f"there is no reference field {name}")
        return
    other = forms.get(via.reference.form)
    source = other.field(wanted) if other else None
    if other and source is None:
        yield Problem(path, f"{other.id} 没有字段 {wanted}", f"{other.id} has no field {wanted}")
    elif source and not _compatible(source, field):
        yield Problem(
            path, f"类型不同：{source.type} → {field.type}", f"types differ: {source.type} → {field.type}"
        )


def _compatible(source: FormField, target: FormField) -> bool:
    if source.reference or target.reference:
        return bool(source.reference and target.reference and source.reference.form == target.reference.form)
    for family in (_NUMERIC, _TEXTUAL):
        if target.type in family:
            return source.type in family
    return source.type is target.type


def _computed(scope: Scope, field: FormField, path: str) -> Iterator[Problem]:
    rule = field.computed
    if rule is None:
        return
    if field.type not in _NUMERIC:
        yield Problem(path, "计算字段须为数值", "a computed field is numeric")
    for name in rule.product:
        factor = scope.field(name)
        if factor is None or factor.type not in _NUMERIC:
            yield Problem(f"{path}.product", f"没有数值字段 {name}", f"there is no numeric field {name}")
    if rule.sum:
        child_name, _, name = rule.sum.partition(".")
        child: Any = next((c for c in scope.of.children if c.name == child_name), None)
        summed = next((f for f in child.fields if f.name == name), None) if child else None
        if summed is None or summed.type not in _NUMERIC:
            zh, en = f"没有明细数值字段 {rule.sum}", f"there is no numeric child field {rule.sum}"
            yield Problem(f"{path}.sum", zh, en)


def _cycles(scope: Scope) -> Iterator[Problem]:
    fields = scope.fields

    def reaches(name: str, goal: str, seen: frozenset[str]) -> bool:
        field = fields.get(name)
        if field is None or field.computed is None or name in seen:
            return False
        product = field.computed.product
        return goal in product or any(reaches(n, goal, seen | {name}) for n in product)

    for field in scope.of.fields:
        if field.computed and reaches(field.name, field.name, frozenset()):
            zh, en = "计算字段循环引用", "the field is computed from itself"
            yield Problem(f"{scope.field_path(field)}.computed", zh, en)


def _can_be_filled(scope: Scope, field: FormField) -> bool:
    if field.accepts_input or field.default or field.column in scope.system_columns():
        return True
    form = scope.form
    if form.number and form.number.field == field.name:
        return True
    return any(
        field.name in (generate.master if scope.of is form else generate.lines)
        or field.column in (generate.source_bill, generate.source_line)
        for generate in form.generate
    )
