"""One typed ``query_…`` tool for each registered domain query the caller is granted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from staging.contracts.query import QueryResult
from staging.domain.json_schema import lean
from staging.mcp import arguments as a, texts
from staging.mcp.directory import Directory, Query
from staging.mcp.shapes import PageAnswer
from staging.mcp.tools import READS, Call, Tool


def query_tools(directory: Directory) -> list[Tool]:
    """In the order of the ERP's catalogue."""
    return [_query_tool(query) for query in directory.queries]


def _query_tool(query: Query) -> Tool:
    async def run(call: Call, given: a.AskQuery) -> PageAnswer:
        request = given.to_wire() | {"filter": given.filter}  # exactly as it came
        found = QueryResult.model_validate(await call.api.post("queries", query.name, body=request))
        return PageAnswer(
            items=found.items, page=found.page, applied_sort=found.applied_sort, warnings=found.warnings
        )

    sortable = f"Sortable by {', '.join(query.sortable)}."
    return Tool(
        query.tool,
        (f"查询：{query.label}", f"Query: {query.label}"),
        "\n".join([f"{query.label}. {query.description}", sortable, texts.MATCHING]),
        a.AskQuery,
        PageAnswer,
        READS,
        run,
        _with(lean(a.AskQuery.model_json_schema(by_alias=True)), "filter", query.filter_schema),
        _with_rows(query),
    )


def _with(envelope: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """``envelope`` with the query's ``own`` schema as property ``name``; its definitions go up, under names of their
    own."""
    inner = json.loads(json.dumps(own).replace('"#/$defs/', f'"#/$defs/{name}.'))
    theirs = {f"{name}.{key}": schema for key, schema in inner.pop("$defs", {}).items()}
    needed = {*envelope.get("required", []), *([name] if inner.get("required") else [])}
    definitions = {**envelope.get("$defs", {}), **theirs}
    return {
        **envelope,
        "properties": {**envelope["properties"], name: inner},
        "required": sorted(needed),
        **({"$defs": definitions} if definitions else {}),
    }


def _with_rows(query: Query) -> dict[str, Any]:
    rows = dict(query.row_schema)
    definitions = rows.pop("$defs", {})
    return _with(PageAnswer.schema_of(), "items", {"type": "array", "items": rows, "$defs": definitions})
