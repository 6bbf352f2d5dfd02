"""States, permissions, duplicates, approval: what may be done to which record, by whom."""

from __future__ import annotations

from typing import Any

import pytest

from staging.contracts.error import ErrorCode as E
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor
from tests.support.shop_erp import BOSS, CLERK, STRANGER, TENANT, Shop, grant, order, quote

FREE, EXAMINED, INVALID = "q1", "q2", "q3"
LEGAL = {
    "update": {FREE},
    "delete": {FREE},
    "examine": {FREE},
    "invalid": {FREE},
    "cancelExamine": {EXAMINED},
    "cancelInvalid": {INVALID},
}
NEW = {"customer": "KH0004", "title": "新画册", "parts": [{"name": "a", "quantity": 1, "price": 1}]}


@pytest.mark.parametrize("record", [FREE, EXAMINED, INVALID])
@pytest.mark.parametrize("op", LEGAL)
def test_an_operation_needs_the_state_it_needs(shop: Shop, op: str, record: str) -> None:
    payload = {"memo": "x"} if op == "update" else {}
    if record in LEGAL[op]:
        assert shop.prepare("quote", op, record=record, payload=payload).target_bill_id == record
    else:
        error = shop.refusal("quote", op, record=record, payload=payload)
        assert error.code == E.STATE_CONFLICT
        assert error.message("zh") != error.message("en")


def test_the_preview_of_a_state_change_shows_the_state(shop: Shop) -> None:
    prepared = shop.prepare("quote", "examine", record="q1")
    assert [(f.field, f.old, f.new, f.new_text) for f in prepared.preview.fields] == [
        ("examined", False, True, "是")
    ]
    assert prepared.pins == {"@examined": False, "@invalid": False}
    assert prepared.payload == {}


def test_a_state_change_takes_no_fields(shop: Shop) -> None:
    assert shop.codes("quote", "examine", record="q1", payload={"memo": "x"}) == {"memo": E.FIELD_UNKNOWN}


def test_physical_deletion_shows_every_line_and_pins_it(shop: Shop) -> None:
    prepared = shop.prepare("request", "delete", record="rq2")
    (section,) = prepared.preview.children
    assert [(line.action, line.line_id) for line in section.lines] == [("remove", "rl4")]
    assert prepared.pins["lines[rl4].quantity"] == "7.000"
    assert prepared.pins["department"] == "仓库"
    shop.execute(shop.execution(prepared))
    assert shop.refusal("request", "delete", record="rq2").code == E.RECORD_NOT_FOUND


def test_a_record_others_build_on_stays_as_it_is(shop: Shop) -> None:
    shop.add(order, sId="o1", sBillNo="CGD0001", sRequestId="rq1")
    error = shop.refusal("request", "cancelExamine", record="rq1")
    assert error.code == E.STATE_CONFLICT
    assert "CGD0001" in error.message("zh")
    shop.change(order, "o1", bInvalid=1)
    assert shop.prepare("request", "cancelExamine", record="rq1").target_bill_id == "rq1"


# ------------------------------------------------------------------------------------------------ who


def _op(op: str) -> dict[str, Any]:
    return (
        {"payload": NEW}
        if op == "create"
        else {"record": "q1", "payload": {"memo": "x"} if op == "update" else {}}
    )


@pytest.mark.parametrize("op", ["create", "update", "delete", "examine", "invalid"])
def test_a_user_may_do_what_is_granted_and_nothing_else(shop: Shop, op: str) -> None:
    if op == "create":
        assert shop.prepare("quote", op, actor=CLERK, **_op(op)).payload["customer"] == "c4"
    else:
        assert shop.refusal("quote", op, actor=CLERK, **_op(op)).code == E.FORBIDDEN


def test_permission_is_asked_before_anything_is_told(shop: Shop) -> None:
    assert shop.refusal("quote", "update", actor=CLERK, record="nix").code == E.FORBIDDEN
    nobody = Actor(TENANT, "nobody")
    assert shop.refusal("quote", "create", actor=nobody, payload={"x": 1}).code == E.FORBIDDEN


def test_grants_of_one_tenant_are_worth_nothing_in_another(shop: Shop) -> None:
    stranger = Actor(STRANGER.tenant, "clerk")
    assert shop.refusal("quote", "create", actor=stranger, payload=NEW).code == E.FORBIDDEN


def test_a_user_id_is_compared_exactly(shop: Shop) -> None:
    assert shop.refusal("quote", "create", actor=Actor(TENANT, "Clerk"), payload=NEW).code == E.FORBIDDEN
    assert shop.refusal("quote", "create", actor=Actor(TENANT, "clerk "), payload=NEW).code == E.FORBIDDEN


@pytest.mark.parametrize("op", ["generate", "examin", "", "drop table", "Create"])
def test_an_operation_type_without_policy_is_denied(shop: Shop, op: str) -> None:
    assert shop.refusal("quote", op, payload=NEW).code == E.FORBIDDEN


def test_a_form_without_operations_denies_all(shop: Shop) -> None:
    assert shop.refusal("region", "create", payload={"name": "x"}).code == E.FORBIDDEN


def test_an_unknown_form_or_command_is_not_found(shop: Shop) -> None:
    assert shop.refusal("nix", "create").code == E.FORM_NOT_FOUND
    for form, op, command in [
        ("", "", "crm.nix.create"),
        ("", "", "crm.quote"),
        ("", "", "buy.quote.create"),
        ("order", "", "crm.quote.create"),
        ("quote", "update", "crm.quote.create"),
    ]:
        with pytest.raises(OpstageError) as caught:
            shop.adapter.route(form, op, command)
        assert caught.value.code == E.FORM_NOT_FOUND


def test_a_grant_taken_back_counts_at_confirm_and_at_execution(shop: Shop) -> None:
    prepared = shop.prepare("quote", "create", actor=CLERK, payload=NEW)
    with shop.engine.begin() as connection:
        connection.execute(grant.delete().where(grant.c.sUserId == "clerk"))
    for again in (
        lambda: shop.adapter.recheck(CLERK, prepared),
        lambda: shop.execute(shop.execution(prepared, actor=CLERK)),
    ):
        with pytest.raises(OpstageError) as caught:
            again()
        assert caught.value.code == E.FORBIDDEN


def test_approving_is_a_grant_of_its_own(shop: Shop) -> None:
    route = shop.adapter.route("quote", "create")
    assert shop.adapter.may_approve(BOSS, route)
    assert not shop.adapter.may_approve(CLERK, route)
    shop.add(grant, sUserId="clerk", sFormId="quote", sOpType="approve")
    assert shop.adapter.may_approve(CLERK, route)


# ------------------------------------------------------------------------------------------------ approval


def test_approval_is_asked_above_the_limit_only(shop: Shop) -> None:
    def required(price: str) -> bool:
        payload = {**NEW, "parts": [{"name": "a", "quantity": 1, "price": price}]}
        return shop.prepare("quote", "create", payload=payload).route.requires_approval

    assert not required("10000")
    assert required("10000.01")
    assert not shop.prepare("quote", "examine", record="q1").route.requires_approval
    shop.change(quote, "q2", bCheck=0)
    assert shop.prepare("quote", "examine", record="q2").route.requires_approval


def test_a_route_without_knowledge_of_the_amount_is_strict(shop: Shop) -> None:
    route = shop.adapter.route
    assert route("quote", "create").requires_approval
    assert route("quote", "examine", payload={}).requires_approval
    assert not route("quote", "create", payload=NEW).requires_approval
    assert route(
        "quote", "create", payload={**NEW, "parts": [{"quantity": 1, "price": 10001}]}
    ).requires_approval
    assert route(
        "quote", "create", payload={**NEW, "parts": [{"quantity": "many", "price": 1}]}
    ).requires_approval
    assert not route("quote", "update").requires_approval


# ------------------------------------------------------------------------------------------------ duplicates

TWIN = {"customer": "c1", "title": "画册", "parts": NEW["parts"]}


def test_a_probable_duplicate_is_refused_and_named(shop: Shop) -> None:
    error = shop.refusal("quote", "create", payload=TWIN)
    assert error.code == E.POSSIBLE_DUPLICATE
    assert "BJD202611001" in error.message("zh")
    assert error.candidates[0]["id"] == "q1"


def test_the_person_may_want_it_anyway(shop: Shop) -> None:
    prepared = shop.prepare("quote", "create", payload=TWIN, allow_duplicate=True)
    assert [w.code for w in prepared.preview.warnings] == ["possible_duplicate"]
    assert "BJD202611001" in prepared.preview.warnings[0].message
    with pytest.raises(OpstageError) as caught:
        shop.execute(shop.execution(prepared))
    assert caught.value.code == E.POSSIBLE_DUPLICATE
    shop.execute(shop.execution(prepared, allow_duplicate=True))


def test_invalid_records_other_tenants_and_itself_are_no_duplicates(shop: Shop) -> None:
    shop.prepare("quote", "create", payload={**TWIN, "customer": "c4", "title": "作废"})
    shop.prepare("quote", "create", payload={**TWIN, "title": "他司"})
    shop.prepare("quote", "create", payload={**TWIN, "title": "画册 "})
    shop.prepare("quote", "update", record="q1", payload={"memo": "x"})


def test_a_change_into_a_duplicate_is_refused(shop: Shop) -> None:
    error = shop.refusal("quote", "update", record="q1", payload={"title": "已审", "customer": "c4"})
    assert error.code == E.POSSIBLE_DUPLICATE


# ------------------------------------------------------------------------------------------------ commands


def test_a_registered_command_is_prepared_pinned_and_executed(shop: Shop) -> None:
    prepared = shop.prepare("quote", "rename", record="BJD202611001", payload={"title": "新名"})
    assert prepared.route.command_type == "crm.quote.rename"
    assert (prepared.payload, prepared.target_bill_id, prepared.pins) == (
        {"title": "新名"},
        "q1",
        {"title": "画册"},
    )
    assert prepared.preview.title == "改标题 画册"
    shop.adapter.recheck(BOSS, prepared)
    shop.execute(shop.execution(prepared))
    assert shop.row(quote, "q1")["sTitle"] == "新名"


def test_a_command_on_a_drifted_record_is_a_conflict(shop: Shop) -> None:
    prepared = shop.prepare("quote", "rename", record="q1", payload={"title": "新名"})
    shop.change(quote, "q1", sTitle="别人")
    for again in (
        lambda: shop.adapter.recheck(BOSS, prepared),
        lambda: shop.execute(shop.execution(prepared)),
    ):
        with pytest.raises(OpstageError) as caught:
            again()
        (entry,) = caught.value.conflict
        assert (entry["seen"], entry["now"], entry["proposed"]) == ("画册", "别人", "新名")


def test_a_commands_input_is_checked_and_granted_like_a_forms(shop: Shop) -> None:
    codes = shop.codes("quote", "rename", record="q1", payload={"name": 1})
    assert codes == {"title": E.FIELD_REQUIRED, "name": E.FIELD_UNKNOWN}
    assert (
        shop.refusal("quote", "rename", actor=CLERK, record="q1", payload={"title": "x"}).code == E.FORBIDDEN
    )
