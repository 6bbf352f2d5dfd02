"""One typed ``query_…`` tool for each registered domain query the caller is granted."""

from __future__ import annotations

from typing import Any

from staging.contracts.query import QueryResult
from staging.domain.json_schema import lean, nested
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
        nested(lean(a.AskQuery.model_json_schema(by_alias=True)), "filter", query.filter_schema),
        _with_rows(query),
    )


def _with_rows(query: Query) -> dict[str, Any]:
    rows = dict(query.row_schema)
    definitions = rows.pop("$defs", {})
    return nested(PageAnswer.schema_of(), "items", {"type": "array", "items": rows, "$defs": definitions})
