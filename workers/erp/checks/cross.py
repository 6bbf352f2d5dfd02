"""Does a catalogue make sense in itself: everything it names exists, and nothing it allows would break a record."""

from __future__ import annotations

from collections.abc import Iterator

from staging.contracts.form import Catalogue, Form
from staging.contracts.preparation import OpType
from workers.erp.checks.fields import check_fields
from workers.erp.checks.problem import Problem
from workers.erp.checks.relations import check_generate, check_locks, check_stock
from workers.erp.checks.scope import scopes

_COMMAND_PARTS = 3


def cross_check(catalogue: Catalogue) -> list[Problem]:
    """Return every problem found; an empty list means the catalogue may be used."""
    return list(_problems(catalogue))


def _problems(catalogue: Catalogue) -> Iterator[Problem]:
    forms = {form.id: form for form in catalogue.forms}
    seen: set[str] = set()
    for form in catalogue.forms:
        if form.id in seen:
            yield Problem(f"forms[{form.id}]", "表单编号重复", "this form id comes twice")
        seen.add(form.id)
    for form in catalogue.forms:
        for scope in scopes(form):
            yield from check_fields(scope, forms)
        yield from _form(form, f"forms[{form.id}]")
        yield from check_generate(form, forms)
        yield from check_stock(form)
        yield from check_locks(form, forms)
    yield from _commands(catalogue, forms)
    yield from _queries(catalogue, forms)


def _form(form: Form, path: str) -> Iterator[Problem]:
    for key, names in (("title", form.title), ("natural_key", form.natural_key)):
        for name in names:
            if form.field(name) is None:
                yield Problem(f"{path}.{key}", f"没有字段 {name}", f"there is no field {name}")
    if form.number:
        field = form.field(form.number.field)
        if field is None:
            zh, en = f"没有字段 {form.number.field}", f"there is no field {form.number.field}"
            yield Problem(f"{path}.number.field", zh, en)
        elif field.type not in ("string", "text") or field.writable:
            zh, en = (
                "单据号字段须为 string 且 writable: false",
                "a number field is a string with writable: false",
            )
            yield Problem(f"{path}.number.field", zh, en)
    yield from _operations(form, path)


def _operations(form: Form, path: str) -> Iterator[Problem]:
    needs = {
        OpType.EXAMINE: form.states.examined,
        OpType.CANCEL_EXAMINE: form.states.examined,
        OpType.INVALID: form.states.invalid,
        OpType.CANCEL_INVALID: form.states.invalid,
        OpType.GENERATE: form.generate,
    }
    for op, policy in form.operations.items():
        here = f"{path}.operations.{op}"
        if op in needs and not needs[op]:
            zh, en = "缺少相应的状态列或 generate", "the form has no state column (or generate) for it"
            yield Problem(here, zh, en)
        if op is OpType.DELETE and not policy.physical and form.states.invalid is None:
            zh, en = (
                "没有作废状态，只能 physical: true",
                "without an invalid state only physical: true can delete",
            )
            yield Problem(here, zh, en)
        approval = policy.approval
        if approval and not approval.always:
            field = form.field(approval.field or "")
            if field is None or field.type not in ("decimal", "integer") or approval.above is None:
                zh, en = (
                    "审批须写 always，或数值字段 field 与 above",
                    "approval takes always, or a numeric field and above",
                )
                yield Problem(f"{here}.approval", zh, en)
    if form.generate and OpType.GENERATE not in form.operations:
        zh, en = "有 generate 但未在 operations 中允许", "generate is described but not allowed in operations"
        yield Problem(f"{path}.generate", zh, en)


def _commands(catalogue: Catalogue, forms: dict[str, Form]) -> Iterator[Problem]:
    taken = {form.command_type(op) for form in catalogue.forms for op in form.operations}
    for command in catalogue.commands:
        path = f"commands[{command.command_type}]"
        form = forms.get(command.form)
        if form is None:
            yield Problem(f"{path}.form", f"没有表单 {command.form}", f"there is no form {command.form}")
        if command.command_type in taken:
            zh, en = (
                "命令类型重复，或与表单操作相同",
                "this command type comes twice, or is a form's own operation",
            )
            yield Problem(path, zh, en)
        taken.add(command.command_type)
        parts = command.command_type.split(".")
        if len(parts) != _COMMAND_PARTS or not all(parts):
            yield Problem(path, "命令类型应为 模块.单据.动作", "a command type is module.document.verb")
        if ":" not in command.handler:
            yield Problem(f"{path}.handler", "应为 package.module:Class", "package.module:Class is expected")
        approval = command.approval
        if approval and not approval.always and (not approval.field or approval.above is None):
            zh, en = "审批须写 always，或 field 与 above", "approval takes always, or field and above"
            yield Problem(f"{path}.approval", zh, en)


def _queries(catalogue: Catalogue, forms: dict[str, Form]) -> Iterator[Problem]:
    taken = {"records"}  # the MCP door asks a form's own records by this name
    for query in catalogue.queries:
        path = f"queries[{query.name}]"
        if query.name in taken:
            yield Problem(path, "查询名重复或被保留", "this query's name comes twice, or is reserved")
        taken.add(query.name)
        for form_id in query.reads:
            if form_id not in forms:
                yield Problem(f"{path}.reads", f"没有表单 {form_id}", f"there is no form {form_id}")
        if ":" not in query.handler:
            yield Problem(f"{path}.handler", "应为 package.module:Class", "package.module:Class is expected")
