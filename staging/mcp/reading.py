"""Tools that only look: the catalogue and the ERP's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from staging.contracts.query import QueryResult
from staging.mcp import arguments as a
from staging.mcp.directory import Directory, FormEntry, Operation
from staging.mcp.shapes import (
    Answer,
    FormAnswer,
    FormOperation,
    FormsAnswer,
    FormSummary,
    PageAnswer,
    RecordAnswer,
)
from staging.mcp.texts import DESCRIPTIONS, TITLES
from staging.mcp.tools import READS, Call, Run, Tool


async def find_forms(call: Call, given: a.FindForms) -> FormsAnswer:
    found = [FormEntry.model_validate(entry) for entry in await call.api.get("forms", q=given.q)]
    forms = [
        FormSummary(
            form_id=form.form_id,
            module=form.module,
            label=form.label,
            operations=_operations(form.op_types, call.directory),
        )
        for form in found
    ]
    return FormsAnswer(forms=forms, total=len(forms))


async def describe_form(call: Call, given: a.DescribeForm) -> FormAnswer:
    schema = await call.api.get("forms", given.form_id)
    granted = [Operation.model_validate(entry) for entry in schema["opTypes"]]
    return FormAnswer.model_validate({**schema, "operations": _operations(granted, call.directory)})


async def field_options(call: Call, given: a.FieldOptions) -> PageAnswer:
    path = ("forms", given.form_id, "fields", given.field, "options")
    return _page(await call.api.get(*path, q=given.q, page=given.page))


async def query_records(call: Call, given: a.QueryRecords) -> PageAnswer:
    request = given.to_wire() | {"filter": given.filter}
    return _page(await call.api.post("forms", request.pop("formId"), "query", body=request))


async def lookup_record(call: Call, given: a.LookupRecord) -> RecordAnswer:
    record = await call.api.get("forms", given.form_id, "records", given.record)
    return RecordAnswer.model_validate(_telling(record))


def _operations(granted: list[Operation], directory: Directory) -> list[FormOperation]:
    return [
        FormOperation(
            op_type=op.op_type,
            label=op.label,
            auto_execute=op.auto_execute,
            tool=directory.tool_of(op.command_type) or "preview_change",
        )
        for op in granted
    ]


def _page(result: Any) -> PageAnswer:
    found = QueryResult.model_validate(result)
    return PageAnswer(
        items=[_telling(item) for item in found.items],
        page=found.page,
        applied_sort=found.applied_sort,
        warnings=found.warnings,
    )


def _telling(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record, or a line, without empty values, and with texts only where they say more than the value."""
    told = dict(record)
    if isinstance(values := told.get("values"), Mapping):
        told["values"] = {name: value for name, value in values.items() if value not in (None, "")}
        written = {name: str(value) for name, value in values.items()}
        texts = told.get("texts") or {}
        told["texts"] = {name: text for name, text in texts.items() if text and text != written.get(name)}
    if isinstance(children := told.get("children"), Mapping):
        told["children"] = {name: [_telling(line) for line in lines] for name, lines in children.items()}
    return {name: value for name, value in told.items() if value not in ({}, None)}


def _reading(name: str, arguments: Any, answer: type[Answer], run: Run) -> Tool:
    return Tool(name, TITLES[name], DESCRIPTIONS[name], arguments, answer, READS, run)


TOOLS = (
    _reading("find_forms", a.FindForms, FormsAnswer, find_forms),
    _reading("describe_form", a.DescribeForm, FormAnswer, describe_form),
    _reading("field_options", a.FieldOptions, PageAnswer, field_options),
    _reading("query_records", a.QueryRecords, PageAnswer, query_records),
    _reading("lookup_record", a.LookupRecord, RecordAnswer, lookup_record),
)
