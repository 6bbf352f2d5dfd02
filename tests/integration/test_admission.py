"""Rows of foreign SQL: taken in once, sent where policy says, refused with a reason; never in anybody's way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, DBAPIError

from staging.contracts.status import StatusCode as C
from staging.domain.canonical import payload_hash
from tests.support.effects_adapter import APPROVED_FORM, CLOSED_FORM, FORM, NOBODY
from tests.support.queue_rows import quoted
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only

pytestmark = only(lambda kind, shared: shared)  # taking in is the queue's business alone


def test_a_row_of_plain_sql_is_executed_like_any_other(world: World) -> None:
    op_id = world.foreign(sPayload='{"note": "名片 😀"}')
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 1)
    assert (done.command_type, done.module_id, done.target_table) == (
        f"test.{FORM}.create",
        "test",
        "effects",
    )
    assert done.payload_hash == payload_hash({"note": "名片 😀"})
    assert done.idempotency_key == op_id
    assert world.verbs(op_id) == ["admit", "claim", "finish"]
    world.oracle.verdict().require_sound()


def test_without_auto_execute_it_waits_for_its_user(world: World) -> None:
    op_id = world.foreign(bAutoExecute=0)
    assert world.run(op_id) == 0
    assert world.code(op_id) is C.WAITING_USER
    assert world.verbs(op_id) == ["admit", "route"]
    assert world.effects(op_id) == 0


@pytest.mark.parametrize("auto", [0, 1])
def test_a_form_that_needs_approval_gets_it_whatever_the_row_says(world: World, auto: int) -> None:
    op_id = world.foreign(sTargetFormId=APPROVED_FORM, bAutoExecute=auto)
    world.run(op_id)
    waiting = world.read(op_id)
    assert (waiting.status_code, waiting.needs_approval) == (C.WAITING_APPROVAL, True)


REFUSED: list[tuple[dict[str, str], C]] = [
    ({"sTargetFormId": "no_such_form"}, C.NOT_FOUND),
    ({"sTargetFormId": CLOSED_FORM}, C.FORBIDDEN),
    ({"sPayload": '{"a": 1, "a": 9}'}, C.PAYLOAD_INVALID),
    ({"sPayload": '{"t": "\\u0000"}'}, C.PAYLOAD_INVALID),
    ({"sPayload": '{"t\\u0000": 1}'}, C.PAYLOAD_INVALID),
    ({"sPayload": '{"t": "\\ud800"}'}, C.PAYLOAD_INVALID),
    ({"sPayload": "[]"}, C.PAYLOAD_INVALID),
    ({"sPayload": "[" * 50 + "]" * 50}, C.PAYLOAD_INVALID),
    ({"sPayload": '{"routeBug": "x"}'}, C.PAYLOAD_INVALID),
    ({"sMakePerson": ""}, C.FORBIDDEN),
    ({"sId": "with a space"}, C.PAYLOAD_INVALID),
    ({"sId": "编号"}, C.PAYLOAD_INVALID),
]


def test_what_cannot_be_taken_in_is_refused_with_a_reason_and_holds_up_nobody(world: World) -> None:
    bad, good = [world.foreign(**values) for values, _ in REFUSED], world.foreign()
    assert world.run(*bad, good) == 1
    for op_id, (values, code) in zip(bad, REFUSED, strict=True):
        refused = world.read(op_id)
        assert (values, refused.status_code) == (values, code)
        assert refused.error_message
        assert refused.error_code
        assert world.verbs(op_id) == ["admit", "route"]
    assert world.code(good) is C.EXECUTED
    world.oracle.verdict().require_sound()


@pytest.mark.parametrize("payload", ["{", "", "NaN", '{"a": 1}\0', "\ud83d"])
def test_text_that_is_no_json_is_refused_by_the_database_or_by_us(world: World, payload: str) -> None:
    try:
        bad = world.foreign(sPayload=payload)
    except (DataError, DBAPIError, UnicodeEncodeError):
        return  # at the door already
    good = world.foreign()
    world.run(bad, good)
    assert (world.code(bad), world.code(good)) == (C.PAYLOAD_INVALID, C.EXECUTED)
    world.oracle.verdict().require_sound()


def test_a_maker_without_a_grant_is_401_when_it_is_executed(world: World) -> None:
    op_id = world.foreign(sMakePerson=NOBODY)
    (done,) = world.settle(op_id)
    assert done.status_code is C.FORBIDDEN
    world.oracle.verdict().require_sound()


def test_a_row_whose_default_key_is_taken_is_409(world: World) -> None:
    first = world.stage(idempotency_key="wanted-id")
    second = world.foreign(sId="wanted-id")
    world.run(first, second)
    assert world.code(first) is C.EXECUTED
    refused = world.read(second)
    assert (refused.status_code, refused.error_code) == (C.CONFLICT, "idempotency_conflict")
    assert [e.seq for e in world.events(second)] == [1]


def test_what_a_foreign_row_claims_about_itself_is_not_believed(world: World) -> None:
    # A confirm, an approval, a hash and a seal that only our confirm may write.
    op_id = world.foreign(
        sTargetFormId=APPROVED_FORM, sConfirmPerson="u-boss", sApprovePerson="u-boss", sSeal="hmac-sha256:0",
        sPayloadHash="sha256:0", bNeedsApproval=0, sCommandType="",
    )  # fmt: skip
    world.run(op_id)
    row = world.read(op_id)
    assert (row.status_code, row.needs_approval) == (C.WAITING_APPROVAL, True)
    assert row.payload_hash == payload_hash({})


def test_a_row_that_starts_anywhere_but_at_100_is_left_alone(world: World) -> None:
    # The agent side only ever writes pending + 100.
    running = world.foreign(iStatusCode=101)
    done = world.foreign(sStatus="success", iStatusCode=200)
    before = [world.read(i) for i in (running, done)]
    assert world.run(running, done) == 0
    assert [world.read(i) for i in (running, done)] == before


def test_workers_racing_to_take_it_in_admit_it_once(world: World) -> None:
    ids = [world.foreign() for _ in range(10)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: world.run(*ids[n * 3 :], *ids[: n * 3]), range(3)))
    world.settle(*ids)
    assert {tuple(world.verbs(i)) for i in ids} == {("admit", "claim", "finish")}
    world.oracle.verdict().require_sound()


def test_where_the_table_has_suserid_it_is_the_maker_of_rows_without_one(make_world: MakeWorld) -> None:
    world = make_world()  # with a store that has not looked at the table yet
    world.wipe()
    with world.queue.begin() as connection:
        column = quoted(connection, "sUserId")
        connection.execute(text(f"ALTER TABLE ai_op_queue ADD COLUMN {column} VARCHAR(64)"))
    try:
        theirs = world.foreign(sMakePerson="", sUserId="u-wang")
        ours = world.foreign(sMakePerson="u-lin", sUserId="u-wang")
        unknown = world.foreign(sMakePerson="")
        world.run(theirs, ours, unknown)
        assert [world.read(i).maker for i in (theirs, ours, unknown)] == ["u-wang", "u-lin", ""]
        assert [world.code(i) for i in (theirs, ours)] == [C.EXECUTED, C.EXECUTED]
        assert world.code(unknown) is C.FORBIDDEN
    finally:
        with world.queue.begin() as connection:
            connection.execute(text(f"ALTER TABLE ai_op_queue DROP COLUMN {column}"))
