"""I10 at the MCP door: nothing confirms but a person asked through their client, with a person's credential."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError, types
from sqlalchemy import select

from staging.storage.tables import op_queue
from tests.integration.mcp.conftest import Way
from tests.support.api import AGENT, B002, OPERATOR, PERSON
from tests.support.demo_requests import new_customer, new_supplier, word
from tests.support.mcp import MODERN, Agent, Person

pytestmark = pytest.mark.anyio
TOOL = "confirm_operation"
NOT_A_YES = [
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
    types.ElicitResult(action="decline", content={"confirm": True}),
    types.ElicitResult(action="accept"),
    types.ElicitResult(action="accept", content={"confirm": False}),
    types.ElicitResult(action="accept", content={}),
    types.ElicitResult(action="accept", content={"confirm": "true"}),
    types.ElicitResult(action="accept", content={"confirm": 1}),
]


async def prepared(agent: Agent, **change: Any) -> str:
    answer = await agent.call("preview_change", **(change or new_customer()))
    return str(answer["preparationId"])


def operations(way: Way, user: str, preparation: str) -> int:
    body = {"filter": {"preparationId": preparation}}
    return len(way.door.as_(user).post("/v1/operations/query", body)["items"])


async def test_it_is_absent_where_the_client_cannot_ask(way: Way) -> None:
    token = way.door.token("u-lin", PERSON)
    async with way.agent("u-lin", person_token=token) as agent:
        assert TOOL not in await agent.tools()


@pytest.mark.parametrize(
    "kind", ["none", "agent", "operator", "somebody else's", "of another tenant", "unknown"]
)
async def test_it_is_absent_without_a_credential_of_the_same_person(plain: Way, kind: str) -> None:
    token = {
        "none": "",
        "agent": plain.door.token("u-lin", AGENT),
        "operator": plain.door.token("u-lin", OPERATOR),
        "somebody else's": plain.door.token("u-zhao", PERSON),
        "of another tenant": plain.door.token("u-lin", PERSON, B002),
        "unknown": "ops_never-issued",
    }[kind]
    async with plain.agent("u-lin", person=Person(), person_token=token) as agent:
        assert TOOL not in await agent.tools()
        preparation = await prepared(agent)
        with pytest.raises(MCPError):
            await agent.client.call_tool(TOOL, {"preparationId": preparation})
    assert operations(plain, "u-lin", preparation) == 0


@pytest.mark.parametrize("reply", NOT_A_YES, ids=[f"{r.action}-{r.content}" for r in NOT_A_YES])
async def test_whatever_is_no_clear_yes_confirms_nothing(plain: Way, reply: types.ElicitResult) -> None:
    person = Person(reply)
    async with plain.agent("u-lin", person=person) as agent:
        preparation = await prepared(agent)
        answer = await agent.call(TOOL, preparationId=preparation)
        assert (answer["confirmed"], len(person.shown)) == (False, 1)
        assert operations(plain, "u-lin", preparation) == 0
        person.reply = Person().reply
        assert (await agent.call(TOOL, preparationId=preparation))["confirmed"]
    assert operations(plain, "u-lin", preparation) == 1


async def test_a_decline_confirms_nothing_on_any_way(way: Way) -> None:
    async with way.agent("u-lin", person=Person(types.ElicitResult(action="decline"))) as agent:
        preparation = await prepared(agent)
        assert not (await agent.call(TOOL, preparationId=preparation))["confirmed"]
    assert operations(way, "u-lin", preparation) == 0


async def test_confirming_again_gives_the_same_operation_and_asks_nobody(way: Way) -> None:
    person = Person()
    async with way.agent("u-lin", person=person) as agent:
        preparation = await prepared(agent)
        first = await agent.call(TOOL, preparationId=preparation)
        again = await agent.call(TOOL, preparationId=preparation)
    assert [o["operationId"] for o in first["operations"]] == [o["operationId"] for o in again["operations"]]
    assert len(person.shown) == 1
    assert operations(way, "u-lin", preparation) == 1


async def test_the_person_sees_what_the_server_shows_and_what_follows_from_a_yes(plain: Way) -> None:
    person = Person()
    async with plain.agent("u-chen", person=person) as agent:
        request = new_supplier()
        preparation = await prepared(agent, **request)
        answer = await agent.call(TOOL, preparationId=preparation)
    (shown,) = person.shown
    assert f'"{request["payload"]["name"]}"' in shown
    assert "还需另一人审批" in shown
    (operation,) = answer["operations"]
    assert (operation["code"], operation["finished"]) == (104, False)
    assert "尚未执行" in operation["next"]


async def test_an_update_is_shown_old_and_new(plain: Way) -> None:
    person = Person(types.ElicitResult(action="decline"))
    async with plain.agent("u-lin", person=person) as agent:
        (found,) = (await agent.call("query_records", formId="customer", filter={"number": "KH0001"}))[
            "items"
        ]
        contact = word()
        change = {"formId": "customer", "opType": "update", "payload": {"contact": contact}}
        preparation = await prepared(agent, record=found["values"]["number"], **change)
        await agent.call(TOOL, preparationId=preparation)
    old = found["values"]["contact"]
    assert f'"{old}" → "{contact}"' in person.shown[0]
    assert found["label"] in person.shown[0]


async def test_a_record_changed_since_is_refused_with_what_changed(plain: Way) -> None:
    async with plain.agent("u-lin", person=Person()) as agent:
        done = plain.door.run("u-lin", **new_customer())
        record = done["resultBillId"]
        change = {"formId": "customer", "opType": "update", "record": record}
        preparation = await prepared(agent, **change, payload={"contact": "李"})
        plain.door.run("u-lin", **change, payload={"contact": "王"})
        refused = await agent.refusal(TOOL, preparationId=preparation)
    assert refused["code"] == "version_conflict"
    (conflict,) = refused["conflict"]
    assert (conflict["now"], conflict["proposed"]) == ("王", "李")
    assert operations(plain, "u-lin", preparation) == 0


async def test_somebody_elses_preparation_is_not_found_and_nobody_is_asked(plain: Way) -> None:
    person = Person()
    async with plain.agent("u-lin") as owner, plain.agent("u-zhao", person=person) as other:
        preparation = await prepared(owner)
        refused = await other.refusal(TOOL, preparationId=preparation)
        missing = await other.refusal(TOOL, preparationId="never-was")
    assert refused == missing
    assert refused["code"] == "preparation_not_found_or_expired"
    assert person.shown == []


async def test_a_card_too_long_to_be_read_is_confirmed_elsewhere(plain: Way) -> None:
    person = Person()
    async with plain.agent("u-zhao", person=person) as agent:
        preparation = await prepared(
            agent,
            formId="customer",
            opType="create",
            payload={"name": word(), "type": "direct", "memo": "很长" * 900},
            also=[
                {"formId": "customer", "opType": "create", "payload": {"name": word(), "memo": "很长" * 900}}
                for _ in range(8)
            ],
        )
        refused = await agent.refusal(TOOL, preparationId=preparation)
    assert f"/?preparation={preparation}" in refused["message"]
    assert person.shown == []


# ------------------------------------------------------------------------------------ forged by a client's own hand
@pytest.fixture
def modern(plain: Way) -> Way:
    return Way(plain.transport, MODERN, plain.door, plain.http)


async def ask(agent: Agent, preparation: str) -> types.InputRequiredResult:
    """The first round, whose question is not put to anybody."""
    arguments = {"preparationId": preparation}
    result = await agent.client.session.call_tool(TOOL, arguments, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def test_an_answer_to_a_question_never_asked_is_answered_with_the_question(modern: Way) -> None:
    yes: types.InputResponses = {"confirm": Person().reply}
    async with modern.agent("u-lin", person=Person()) as agent:
        preparation = await prepared(agent)
        result = await agent.client.session.call_tool(
            TOOL, {"preparationId": preparation}, input_responses=yes, allow_input_required=True
        )
        assert isinstance(result, types.InputRequiredResult)
    assert operations(modern, "u-lin", preparation) == 0


@pytest.mark.parametrize("forgery", ["made up", "of another preparation", "of another user"])
async def test_a_state_that_was_not_sealed_for_this_question_is_refused(modern: Way, forgery: str) -> None:
    async with (
        modern.agent("u-lin", person=Person()) as agent,
        modern.agent("u-zhao", person=Person()) as other,
    ):
        preparation = await prepared(agent)
        state = {
            "made up": "v1.AAAA",
            "of another preparation": (await ask(agent, await prepared(agent))).request_state,
            "of another user": (await ask(other, await prepared(other))).request_state,
        }[forgery]
        with pytest.raises(MCPError) as caught:
            await agent.client.session.call_tool(
                TOOL,
                {"preparationId": preparation},
                input_responses={"confirm": Person().reply},
                request_state=state,
                allow_input_required=True,
            )
        assert caught.value.code == types.INVALID_PARAMS
    assert operations(modern, "u-lin", preparation) == 0


async def test_a_box_that_was_not_shown_cannot_be_ticked(plain: Way) -> None:
    person = Person(types.ElicitResult(action="accept", content={"confirm": True, "allowDuplicate": True}))
    async with plain.agent("u-lin", person=person) as agent:
        answer = await agent.call(TOOL, preparationId=await prepared(agent))
    (operation,) = answer["operations"]
    with plain.door.services.databases.store.engine.connect() as connection:
        row = connection.execute(select(op_queue).where(op_queue.c.sId == operation["operationId"])).one()
    assert (operation["code"], row.bAllowDuplicate) == (100, 0)
