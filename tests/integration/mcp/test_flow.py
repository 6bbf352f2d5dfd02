"""The whole job by the official client, over every way in and on every database; what is listed, and to whom."""

from __future__ import annotations

import pytest
from mcp import types

from tests.integration.mcp.conftest import Way, whole_job
from tests.support.api import Door
from tests.support.mcp import MODERN, Person

pytestmark = pytest.mark.anyio
FIXED = {
    "find_forms",
    "describe_form",
    "field_options",
    "query_records",
    "lookup_record",
    "preview_change",
    "operation_status",
    "my_todos",
    "cancel_operation",
}
QUERIES = {"query_orders", "query_customer_purchases", "query_quote", "query_quote_comparison"}


async def test_the_whole_job_over_every_transport_and_revision(way: Way) -> None:
    await whole_job(way)


@pytest.mark.parametrize("other_door", ["postgresql", "mariadb"], indirect=True)
async def test_the_whole_job_on_every_database(other_door: Door) -> None:
    await whole_job(Way("stdio", MODERN, other_door, None))


async def test_a_registered_command_is_prepared_by_its_own_typed_tool(way: Way) -> None:
    async with way.agent("u-lin") as agent:
        product = (await agent.call("query_records", formId="product", filter={"type": "finished"}))["items"][
            0
        ]
        options = await agent.call("field_options", formId="sales_order", field="customer", q="KH0001")
        (customer,) = options["items"]
        line = {"product": product["values"]["number"], "quantity": "2"}
        prepared = await agent.call(
            "prepare_erp_sales_order_create", payload={"customer": customer["id"], "lines": [line]}
        )
        (item,) = prepared["items"]
        assert item["commandType"] == "erp.sales_order.create"
        assert item["preview"]["totals"]
        stock = way.door.as_("u-lin").get("/v1/todos")
        assert prepared["pending"]["count"] == len(stock["waiting"]) + len(stock["running"])


async def test_what_is_listed_is_typed_and_honest(way: Way) -> None:
    async with way.agent("u-lin", person=Person()) as agent:
        tools = await agent.tools()
    commands = {"prepare_erp_sales_order_create", "prepare_erp_sales_order_cancel"}
    assert set(tools) == FIXED | QUERIES | commands | {"confirm_operation"}
    for name, tool in tools.items():
        assert tool.title
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        hints = tool.annotations
        assert hints is not None
        reads = name in (FIXED | QUERIES) - {"preview_change", "cancel_operation"}
        assert hints.read_only_hint is reads
        assert hints.open_world_hint is False
        if not reads:
            assert hints.destructive_hint is (name in {"cancel_operation", "confirm_operation"})
    create = tools["prepare_erp_sales_order_create"].input_schema
    assert "record" not in create["properties"]
    payload = create["properties"]["payload"]
    assert payload["required"] == ["customer", "lines"]
    assert (payload["properties"]["lines"]["minItems"], payload["properties"]["lines"]["maxItems"]) == (
        1,
        200,
    )
    line = create["$defs"][payload["properties"]["lines"]["items"]["$ref"].removeprefix("#/$defs/")]
    assert line["properties"]["quantity"]["type"] == "string"
    assert line["properties"]["quantity"]["pattern"].endswith(r"{1,3})?$")
    assert line["additionalProperties"] is False


async def test_choices_and_limits_of_a_command_stay_in_its_schema(plain: Way) -> None:
    async with plain.agent("u-zhao") as agent:
        tools = await agent.tools()
    order = tools["query_records"].input_schema["$defs"]["Sort"]["properties"]["direction"]
    assert order["enum"] == ["ASC", "DESC"]
    adjust = tools["prepare_erp_stock_adjustment_create"].input_schema["properties"]["payload"]
    assert adjust["properties"]["reason"]["enum"] == ["count_gain", "count_loss", "damage", "other"]
    title = tools["prepare_erp_digital_human_project_setTitle"].input_schema["properties"]
    assert (title["payload"]["properties"]["title"]["minLength"], title["record"]["maxLength"]) == (1, 200)
    assert title["payload"]["properties"]["title"]["maxLength"] == 60


async def test_everybody_is_shown_only_what_they_are_granted(plain: Way) -> None:
    async with plain.agent("u-sun") as reader, plain.agent("u-zhou") as nobody:
        assert set(await reader.tools()) == FIXED | QUERIES
        assert (await nobody.call("find_forms")) == {"forms": [], "total": 0}
        refused = await reader.refusal("preview_change", formId="customer", opType="create", payload={})
        assert refused["code"] == "forbidden"


async def test_an_unknown_tool_is_a_protocol_error(way: Way) -> None:
    from mcp import MCPError

    async with way.agent("u-lin") as agent:
        with pytest.raises(MCPError) as caught:
            await agent.client.call_tool("confirm_operation", {"preparationId": "x"})
        assert caught.value.code == types.INVALID_PARAMS
