"""How one execution ends: each error its code, nothing half-applied; three engines, shared and separate databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy.exc import DataError

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode as C
from staging.domain.errors import STATUS_CODE
from tests.support.effects_adapter import NOBODY
from tests.support.world import World

WRITE = {"do": "write"}


def test_an_executed_operation_has_one_effect_one_ledger_row_and_its_result(world: World) -> None:
    op_id = world.stage()
    assert world.run(op_id) == 1
    done = world.read(op_id)
    assert (done.status, done.code, done.attempt) == ("success", 200, 1)
    assert (done.result_bill_id, done.result_message, done.error_message) == (f"bill-{op_id}", "完成", None)
    assert done.executed_at is not None
    assert (done.lease_token, done.lease_until) == (None, None)
    assert world.verbs(op_id) == ["submit", "claim", "finish"]
    world.oracle.verdict().require_sound()


def test_the_result_speaks_the_rows_language(world: World) -> None:
    op_id = world.stage(locale="en")
    world.run(op_id)
    assert world.read(op_id).result_message == "done"


def test_a_batch_runs_every_operation_it_names_and_no_other(world: World) -> None:
    ids = [world.stage() for _ in range(5)]
    left = world.stage()
    assert world.run(*ids, "unknown-id") == 5
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 5
    assert world.code(left) is C.SUBMITTED


def test_each_refusal_ends_with_its_numeric_code_and_undoes_what_was_done(world: World) -> None:
    refusals = [code for code in ErrorCode if code is not ErrorCode.UNAVAILABLE]
    ids = [
        world.stage(WRITE, {"do": "lock", "row": "a"}, {"do": "refuse", "code": c.value}) for c in refusals
    ]
    assert world.run(*ids) == len(ids)
    for op_id, code in zip(ids, refusals, strict=True):
        done = world.read(op_id)
        assert (done.status_code, done.error_code) == (STATUS_CODE.get(code, C.PAYLOAD_INVALID), code.value)
        assert done.error_message
        assert json.loads(done.error_detail_json or "")["code"] == code.value
    assert world.value("a") == 0
    world.oracle.verdict().require_sound()


def test_a_field_that_is_not_valid_is_400_and_names_the_field(world: World) -> None:
    op_id = world.stage({"do": "invalid", "field": "parts[1].price"})
    world.run(op_id)
    done = world.read(op_id)
    assert done.status_code is C.PAYLOAD_INVALID
    assert json.loads(done.error_detail_json or "")["details"][0]["field"] == "parts[1].price"
    world.oracle.verdict().require_sound()


def test_a_bug_is_500_once_and_its_text_stays_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    op_id = world.stage(WRITE, {"do": "bug", "text": "password=hunter2"})
    world.run(op_id)
    done = world.read(op_id)
    assert (done.status_code, done.attempt) == (C.UNEXPECTED, 1)
    assert "hunter2" not in (done.error_message or "") + (done.error_detail_json or "")
    assert "hunter2" in caplog.text
    world.oracle.verdict().require_sound()


def test_a_unique_key_of_the_erp_that_says_no_is_422(world: World) -> None:
    op_id = world.stage(WRITE, {"do": "clash"})
    world.run(op_id)
    assert world.code(op_id) is C.RULE_REFUSED
    world.oracle.verdict().require_sound()


def test_a_value_that_does_not_fit_its_column_is_400(world: World) -> None:
    op_id = world.stage(WRITE, {"do": "misfit"})
    world.run(op_id)
    assert world.code(op_id) is C.PAYLOAD_INVALID
    world.oracle.verdict().require_sound()


def test_a_transient_error_of_the_adapter_is_tried_again_and_then_500(
    world: World, flag: Callable[[str], str]
) -> None:
    op_id = world.stage({"do": "append", "file": flag("starts")}, WRITE, {"do": "transient"})
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt, done.error_code) == (C.UNEXPECTED, 3, "unavailable")
    assert Path(flag("starts")).read_bytes() == b"..."
    assert world.verbs(op_id) == ["submit", *["claim", "back_off"] * 2, "claim", "finish"]
    world.oracle.verdict().require_sound()


def test_an_attempt_that_comes_through_after_a_transient_error_is_the_only_one_that_counts(
    world: World, flag: Callable[[str], str]
) -> None:
    op_id = world.stage(WRITE, {"do": "once", "file": flag("failed"), "steps": [{"do": "transient"}]})
    (done,) = world.settle(op_id)
    assert (done.status_code, done.attempt) == (C.EXECUTED, 2)
    assert (done.error_message, done.error_code) == (None, "")
    world.oracle.verdict().require_sound()


def test_a_payload_that_cannot_be_read_is_400_whoever_wrote_it(world: World) -> None:
    for payload in (
        "{",
        '{"a": 1, "a": 2}',
        '{"t": "\\u0000"}',
        "[1, 2]",
        '"text"',
        "NaN",
        '{"a": 1e999}',
        "",
    ):
        op_id = world.stage()
        try:
            world.set([op_id], sPayload=payload)
        except DataError:
            assert world.kind == "postgresql"  # it does not even let such a text in
            continue
        world.run(op_id)
        done = world.read(op_id)
        assert (payload, done.status_code) == (payload, C.PAYLOAD_INVALID)
        assert done.error_message


def test_a_payload_changed_after_confirm_is_not_executed(world: World) -> None:
    op_id = world.stage(note="82,000")
    world.set([op_id], sPayload='{"steps": [], "note": "820,000"}')
    world.run(op_id)
    done = world.read(op_id)
    assert done.status_code is C.CONFLICT
    assert done.error_message
    world.oracle.verdict().require_sound()


def test_a_maker_whose_grant_is_gone_is_401_at_execution(world: World) -> None:
    op_id = world.stage(maker=NOBODY)
    world.run(op_id)
    assert world.code(op_id) is C.FORBIDDEN
    world.oracle.verdict().require_sound()


def test_what_the_adapter_answers_is_checked_before_the_commit(world: World) -> None:
    # A result that cannot be written back must not be found out after the business change is committed.
    answers = [
        ("BJD202611001", "报价单 😀 完成", C.EXECUTED),
        ("x" * 200, "m" * 5000, C.EXECUTED),
        ("bill", "NUL in \0 the message", C.EXECUTED),
        ("x" * 201, "too long a record id", C.UNEXPECTED),
        ("bill\0", "a record id with NUL", C.UNEXPECTED),
    ]
    ids = [world.stage({"do": "result", "billId": quote(b), "message": quote(m)}) for b, m, _ in answers]
    world.run(*ids)
    assert [world.code(i) for i in ids] == [code for _, _, code in answers]
    world.oracle.verdict().require_sound()
