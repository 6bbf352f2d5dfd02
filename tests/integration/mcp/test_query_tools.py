"""Each registered query of the ERP is a typed tool of its own; the client checks answers against its schema."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.mcp.conftest import Way
from tests.support.api import B002

pytestmark = pytest.mark.anyio
AMBIGUOUS = "上海云帆文化传播有限公司"


async def test_a_model_asks_what_was_bought_and_what_it_costs_today(way: Way) -> None:
    async with way.agent("u-lin") as agent:
        bought = await agent.call(
            "query_customer_purchases",
            filter={"groupBy": "customer"},
            sort=[{"field": "amount", "direction": "DESC"}],
            page={"size": 1},
        )
        (best,) = bought["items"]
        assert bought["page"]["hasMore"]
        asked = {"customer": best["customer"], "status": ["draft", "examined"]}
        orders = await agent.call("query_orders", filter=asked, page={"size": 50})
        assert orders["page"]["total"] == best["orders"]
        line = orders["items"][0]["lines"][0]
        wanted = [{"product": line["product"], "quantity": line["quantity"]}]
        quote = await agent.call("query_quote", filter={"customer": best["customer"], "lines": wanted})
        assert quote["items"][0]["quoteTotal"] == quote["items"][0]["amount"]
        assert quote["warnings"][0]["code"] == "not_reserved"
        compared = await agent.call(
            "query_quote_comparison",
            filter={"customer": best["customer"], "product": [line["product"]], "quantity": ["1", "1000"]},
        )
        assert [row["quantity"] for row in compared["items"]] == ["1.000", "1000.000"]


def resolved(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The schema at ``path``, references followed."""
    here = schema
    for step in path:
        here = here[step]
        while "$ref" in here:
            here = schema["$defs"][here["$ref"].removeprefix("#/$defs/")]
    return here


async def test_enums_limits_and_nesting_stay_in_the_schemas(plain: Way) -> None:
    async with plain.agent("u-sun") as agent:
        tools = await agent.tools()
    orders, quote = tools["query_orders"], tools["query_quote"]
    status = resolved(orders.input_schema, "properties", "filter", "properties", "status")
    assert status["items"]["enum"] == ["draft", "examined", "cancelled"]
    day = resolved(
        orders.input_schema, "properties", "filter", "properties", "orderDate", "properties", "from"
    )
    assert (day["type"], day["format"]) == ("string", "date")
    assert orders.input_schema["required"] == []
    assert quote.input_schema["required"] == ["filter"]
    lines = resolved(quote.input_schema, "properties", "filter", "properties", "lines")
    assert (lines["minItems"], lines["maxItems"]) == (1, 200)
    line = resolved(
        quote.input_schema, "properties", "filter", "properties", "lines", "items", "properties", "quantity"
    )
    assert line["pattern"].endswith(r"{1,3})?$")
    assert resolved(quote.input_schema, "properties", "page", "properties", "size")["maximum"] == 50
    row = resolved(orders.output_schema or {}, "properties", "items", "items", "properties", "lines", "items")
    assert {"price", "amount"} <= set(row["required"])
    assert "不预留库存" in (quote.description or "")
    assert "下单时的价格" in (orders.description or "")


async def test_wrong_filters_are_the_contracts_error(plain: Way) -> None:
    async with plain.agent("u-sun") as agent:
        refused = await agent.refusal(
            "query_orders", filter={"customr": "x", "status": ["open"], "product": []}
        )
        assert {d["field"] for d in refused["details"]} == {
            "filter.customr",
            "filter.status[0]",
            "filter.product",
        }
        refused = await agent.refusal("query_orders", filter={"customer": AMBIGUOUS})
        assert refused["code"] == "reference_ambiguous"
        assert {c["number"] for c in refused["candidates"]} == {"KH0001", "KH0002"}
        refused = await agent.refusal("query_orders", filter={"customer": "🧧'; DROP TABLE sal_order; --"})
        assert refused["code"] == "reference_not_found"
        refused = await agent.refusal("query_orders", sort=[{"field": "customerName"}])
        assert refused["code"] == "query_sort_field_not_allowed"
        assert "orderDate" in refused["hint"]
        refused = await agent.refusal("query_orders", page={"size": 51})
        assert refused["details"][0]["field"] == "page.size"


async def test_nobody_sees_the_orders_of_another_tenant(plain: Way) -> None:
    async with plain.agent("u-sun") as here, plain.agent("u-gao", tenant=B002) as there:
        mine = await here.call("query_orders", page={"size": 50})
        theirs = await there.call("query_orders", page={"size": 50})
        assert theirs["items"]
        assert {o["id"] for o in mine["items"]}.isdisjoint(o["id"] for o in theirs["items"])


async def test_a_page_of_long_orders_is_cut_to_fit_and_says_so(plain: Way) -> None:
    async with plain.agent("u-sun") as agent:
        answer = await agent.call("query_orders", page={"size": 50})
    assert answer["page"]["total"] >= 50
    assert len(answer["items"]) < 50
    assert any("items" in note for note in answer["notes"])


async def test_every_form_says_in_full_what_can_be_filtered_and_how(plain: Way) -> None:
    async with plain.agent("u-zhao") as agent:
        forms = [form["formId"] for form in (await agent.call("find_forms"))["forms"]]
        for form in forms:
            told = await agent.call("describe_form", formId=form)
            schema = told["filterSchema"]
            filterable = {field["name"] for field in told["fields"] if field.get("filterable")}
            assert set(schema["properties"]) == {"id", *filterable}
            assert told["sortable"][-1] == "id"
            assert "notes" not in told  # nothing of it is cut off
        asked = {"customer": "no such", "totalAmount": {"from": 0.1 + 0.2}, "nonsense": 1}
        refused = await agent.refusal("query_records", formId="sales_order", filter=asked)
    assert [d["field"] for d in refused["details"]] == ["filter.totalAmount.from"]
