"""``opstage forms``: the form catalogue of the ERP adapter, checked against the live database or drafted from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from staging.cli.adapter import open_adapter
from staging.cli.console import Exit, locale, pick, say
from staging.cli.tables import print_table
from staging.contracts.error import ErrorCode
from staging.contracts.form import Child, Form, FormField
from staging.domain.errors import Refused, rule
from staging.settings import get_settings

app = typer.Typer(name="forms", help="the form catalogue · 表单目录", no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="machine-readable · 以 JSON 输出")]


@app.command("list")
def list_forms(as_json: _Json = False) -> None:
    """List the forms and what may be done with each · 列出表单及可用操作."""
    with open_adapter(get_settings()) as adapter:
        catalogue = adapter.catalogue
    if as_json:
        rows = [_summary(form) for form in catalogue.forms]
        commands = [
            {
                "commandType": command.command_type,
                "form": command.form,
                "label": command.label.text(locale()),
                "execution": command.execution,
            }
            for command in catalogue.commands
        ]
        print(json.dumps({"forms": rows, "commands": commands}, ensure_ascii=False))
        return
    lines = [(form.id, form.module, form.label.text(locale()), _operations(form)) for form in catalogue.forms]
    print_table(
        (pick("表单", "form"), pick("模块", "module"), pick("名称", "label"), pick("操作", "operations")),
        lines,
    )
    if catalogue.commands:
        print()
        commands_shown = [
            (command.command_type, command.form, command.label.text(locale()), command.execution)
            for command in catalogue.commands
        ]
        print_table(
            (pick("命令", "command"), pick("表单", "form"), pick("名称", "label"), pick("执行", "execution")),
            commands_shown,
        )


@app.command()
def show(
    form: Annotated[str, typer.Argument(help="form id · 表单标识")],
    as_json: _Json = False,
) -> None:
    """Show one form: operations, fields, child lines · 显示一个表单."""
    with open_adapter(get_settings()) as adapter:
        found = next((one for one in adapter.catalogue.forms if one.id == form), None)
    if found is None:
        raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": form})
    if as_json:
        print(json.dumps(found.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False))
        return
    print(f"{found.id}  {found.label.text(locale())}  ({found.module}, {found.table})")
    print(f"{pick('操作', 'operations')}: {_operations(found)}")
    if found.number:
        print(f"{pick('编号规则', 'number')}: {found.number.field} = {found.number.rule}")
    print()
    _fields(found.fields)
    for child in found.children:
        _child(child, "")


@app.command()
def check(as_json: _Json = False) -> None:
    """Compare the catalogue with the live database; exit 1 where it does not fit · 对照数据库检查表单目录."""
    with open_adapter(get_settings()) as adapter:
        problems = adapter.check()
        count = len(adapter.catalogue.forms)
    errors = [problem for problem in problems if problem.severity == "error"]
    if as_json:
        rows = [
            {"severity": problem.severity, "where": problem.where, "message": problem.message(locale())}
            for problem in problems
        ]
        print(json.dumps(rows, ensure_ascii=False))
    else:
        marks = {"error": pick("问题", "PROBLEM"), "warning": pick("警告", "warning")}
        for problem in problems:
            print(f"{marks[problem.severity]}  {problem.where}: {problem.message(locale())}")
        if errors:
            say(f"{len(errors)} 个问题", f"{len(errors)} problem(s)")
        else:
            say(f"{count} 个表单与数据库一致", f"{count} forms fit the database")
    raise typer.Exit(Exit.REFUSED if errors else Exit.OK)


@app.command()
def introspect(
    tables: Annotated[list[str], typer.Argument(help="tables, a master before its lines · 表名，主表在前")],
    as_json: _Json = False,
) -> None:
    """Draft catalogue entries (YAML) from tables of the live database · 由数据库表生成表单草稿."""
    # Without the catalogue that is being drafted: `introspect … > "$OPSTAGE_FORMS"` has just emptied it.
    with open_adapter(get_settings().model_copy(update={"forms": None})) as adapter:
        try:
            draft = adapter.introspect(tables, locale())
        except ValueError as error:
            names = ", ".join(tables)
            raise rule(
                f"ERP 数据库中没有这些表：{names}", f"The ERP's database has none of these tables: {names}"
            ) from error
    print(
        json.dumps({"yaml": draft}, ensure_ascii=False) if as_json else draft,
        end="" if draft.endswith("\n") else "\n",
    )


def _summary(form: Form) -> dict[str, Any]:
    return {
        "id": form.id,
        "module": form.module,
        "label": form.label.text(locale()),
        "table": form.table,
        "operations": {
            op: {"execution": policy.execution, "approval": policy.approval is not None}
            for op, policy in form.operations.items()
        },
        "children": [child.name for child in form.children],
    }


def _operations(form: Form) -> str:
    """``create, update (manual), examine (approval)``"""
    shown = []
    for op, policy in form.operations.items():
        marks = [pick("人工", "manual")] * (policy.execution == "manual")
        marks += [pick("需审批", "approval")] * (policy.approval is not None)
        shown.append(f"{op} ({', '.join(marks)})" if marks else str(op))
    return ", ".join(shown) or "-"


def _child(child: Child, above: str) -> None:
    path = f"{above}{child.name}"
    print(f"\n{path}[]  {child.label.text(locale())}  ({child.table})")
    _fields(child.fields)
    for below in child.children:
        _child(below, f"{path}[].")


def _fields(fields: Sequence[FormField]) -> None:
    names = pick("字段", "field"), pick("名称", "label"), pick("类型", "type"), pick("说明", "notes")
    print_table(names, [(f.name, f.label.text(locale()), f.type.value, _notes(f)) for f in fields])


def _notes(field: FormField) -> str:
    notes = [
        pick("必填", "required") if field.required else "",
        pick("只读", "read-only") if not field.accepts_input else "",
        f"≤{field.length}" if field.length else "",
        pick(f"{field.decimals} 位小数", f"{field.decimals} decimals") if field.decimals is not None else "",
        f"→ {field.reference.form}" if field.reference else "",
        " | ".join(f"{choice.value} {choice.label.text(locale())}" for choice in field.choices),
    ]
    return ", ".join(note for note in notes if note)
