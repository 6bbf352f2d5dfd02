"""Find form → query → prepare → the person confirms → status, by the official client over every way in."""

from __future__ import annotations

import pytest
from mcp import types

from tests.integration.mcp.conftest import Way
from tests.support.api import Door
from tests.support.demo_requests import word
from tests.support.mcp import Person
from workers.erp.demo import oracle

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


def customers(door: Door, name: str) -> int:
    with door.services.databases.adapter.transaction() as tx:
        return len(oracle.rows(tx.connection, "elecustomer", sCustomerName=name))


async def test_the_whole_job_over_every_transport_and_revision(way: Way) -> None:
    name, person = word(), Person()
    async with way.agent("u-lin", person=person) as agent:
        (form,) = [
            f for f in (await agent.call("find_forms", q="客户"))["forms"] if f["formId"] == "customer"
        ]
        assert {o["opType"] for o in form["operations"]} >= {"create", "update"}
        found = await agent.call("query_records", formId="customer", page={"size": 3})
        assert len(found["items"]) == 3
        assert found["page"]["total"] >= 60
        prepared = await agent.call(
            "preview_change",
            formId="customer",
            opType="create",
            payload={"name": name, "type": "direct", "creditLimit": "1234567890123.45"},
        )
        assert prepared["state"] == "PREPARED"
        before = prepared["pending"]["count"]  # what other tests of this run left waiting
        assert prepared["items"][0]["preview"]["fields"][-1]["new"] == "1234567890123.45"
        assert customers(way.door, name) == 0
        confirmed = await agent.call("confirm_operation", preparationId=prepared["preparationId"])
        assert confirmed["confirmed"]
        (shown,) = person.shown
        assert f'"{name}"' in shown
        assert '"1234567890123.45"' in shown
        (operation,) = confirmed["operations"]
        assert (operation["code"], operation["finished"]) == (100, False)
        assert confirmed["pending"]["count"] == before + 1
        assert customers(way.door, name) == 0
        way.door.execute(operation["operationId"])
        done = await agent.call("operation_status", operationId=operation["operationId"], waitSeconds=10)
        assert (done["operation"]["status"], done["operation"]["code"]) == ("success", 200)
        assert done["operation"]["finished"]
        assert done["pending"]["count"] == before
        assert customers(way.door, name) == 1


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
