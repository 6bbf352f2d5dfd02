"""Every operation type, through prepare, confirm and a real worker, as the ERP's own database tells it."""

from __future__ import annotations

import secrets
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import select

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import ConfirmRequest, PrepareRequest
from staging.contracts.status import StatusCode as C
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor, ActorKind, new_id
from staging.domain.operation import Operation
from tests.conformance.conftest import B001, B002, Product, person
from workers.erp.demo import facts, oracle

LIN, CHEN = "u-lin", "u-chen"


def title() -> str:
    return f"测试 {secrets.token_hex(4)}"


def quotation(product: Product, **changes: Any) -> dict[str, Any]:
    customer = product.ask(facts.a_customer, "B001")
    part = {
        "name": "内页",
        "quantity": 1000,
        "price": "0.1050",
        "tiers": [{"quantity": 5000, "price": "0.09"}],
    }
    return {"customer": customer.sCustomerNo, "title": title(), "parts": [part], **changes}


def created(product: Product, **changes: Any) -> Operation:
    done = product.run(LIN, form_id="quotation", op_type="create", payload=quotation(product, **changes))
    assert done.code == C.EXECUTED, done.error_message
    return done


def act(
    product: Product, op_type: str, record: str | None, user: str = LIN, form: str = "quotation"
) -> Operation:
    return product.run(user, form_id=form, op_type=op_type, record=record or "")


def bill(product: Product, operation: Operation, table: str = "quo_quotationmaster") -> Any:
    return product.ask(oracle.one, table, sId=operation.result_bill_id)


def requisition(product: Product, quantity: int = 100) -> Operation:
    place = product.ask(facts.a_stocked_place, "B001")
    payload = {
        "department": "印刷部",
        "lines": [{"product": place.product_no, "quantity": quantity, "price": "2.5"}],
    }
    done = product.run(CHEN, form_id="purchase_requisition", op_type="create", payload=payload)
    assert done.code == C.EXECUTED, done.error_message
    return done


def both(product: Product, user: str, **request: Any) -> list[int]:
    """The same change prepared twice, then confirmed twice; how both end (a refused confirm by its own code)."""
    agent = Actor(B001, user, ActorKind.AGENT)
    prepared = [product.services.prepare.prepare(agent, PrepareRequest(**request)) for _ in range(2)]
    codes, confirmed = [], []
    for one in prepared:
        try:
            confirmed += product.services.confirm.confirm(person(user), one.preparation_id)
        except OpstageError as error:  # the first has been executed already
            codes.append(int(error.status_code))
    return sorted(codes + [product.ended(user, o.id).code or 0 for o in confirmed])


def test_create_writes_master_children_and_grandchildren(product: Product) -> None:
    before = product.ask(oracle.counts)
    done = created(product)
    after = product.ask(oracle.counts)
    grown = {table: n - before[table] for table, n in after.items() if n != before[table]}
    assert grown == {"quo_quotationmaster": 1, "quo_quotationpart": 1, "quo_quotationtier": 1}
    row = bill(product, done)
    assert (row.dTotalAmount, row.sMakePerson, row.sBrandsId) == (Decimal("105.00"), LIN, "B001")
    assert row.sBillNo.startswith("BJD20")
    assert row.sContact == product.ask(facts.a_customer, "B001").sContact  # copied from the customer


def test_update_changes_only_what_was_shown(product: Product) -> None:
    done = created(product)
    before = bill(product, done)
    parts = product.ask(oracle.rows, "quo_quotationpart", sParentId=before.sId)
    payload = {
        "contact": "王小姐 😀'; DROP TABLE x",
        "parts": [{"id": parts[0].sId, "price": "0.2"}, {"name": "封面", "quantity": 10, "price": "1"}],
    }
    updated = product.run(LIN, form_id="quotation", op_type="update", record=before.sBillNo, payload=payload)
    assert updated.code == C.EXECUTED, updated.error_message
    after = bill(product, done)
    assert (after.sContact, after.dTotalAmount) == ("王小姐 😀'; DROP TABLE x", Decimal("210.00"))
    assert (after.sTitle, after.sBillNo, after.tCreateDate) == (
        before.sTitle,
        before.sBillNo,
        before.tCreateDate,
    )
    removed = [{"id": parts[0].sId, "remove": True}]
    again = product.run(
        LIN, form_id="quotation", op_type="update", record=before.sId, payload={"parts": removed}
    )
    assert again.code == C.EXECUTED, again.error_message
    assert bill(product, done).dTotalAmount == Decimal("10.00")
    assert product.ask(oracle.count, "quo_quotationtier", sParentId=parts[0].sId) == 0


def test_examine_and_back(product: Product) -> None:
    done = created(product)
    assert act(product, "examine", done.result_bill_id).code == C.EXECUTED
    row = bill(product, done)
    assert (row.bCheck, row.sCheckPerson) == (1, LIN)
    with pytest.raises(OpstageError) as refusal:
        act(product, "examine", done.result_bill_id)
    assert refusal.value.code is ErrorCode.STATE_CONFLICT
    with pytest.raises(OpstageError):
        product.run(LIN, form_id="quotation", op_type="update", record=row.sBillNo, payload={"contact": "x"})
    assert act(product, "cancelExamine", done.result_bill_id).code == C.EXECUTED
    assert bill(product, done).bCheck == 0


def test_invalid_and_back(product: Product) -> None:
    done = created(product)
    assert act(product, "invalid", done.result_bill_id).code == C.EXECUTED
    assert bill(product, done).bInvalid == 1
    assert act(product, "cancelInvalid", done.result_bill_id).code == C.EXECUTED
    assert bill(product, done).bInvalid == 0


def test_delete_of_a_document_voids_it(product: Product) -> None:
    done = created(product)
    assert act(product, "delete", done.result_bill_id).code == C.EXECUTED
    assert bill(product, done).bInvalid == 1


def test_physical_delete_leaves_no_line_behind(product: Product) -> None:
    done = requisition(product)
    assert act(product, "delete", done.result_bill_id, CHEN, "purchase_requisition").code == C.EXECUTED
    assert product.ask(oracle.count, "pur_requisition", sId=done.result_bill_id) == 0
    assert product.ask(oracle.count, "pur_requisitionline", sParentId=done.result_bill_id) == 0


def test_generate_takes_from_the_source_and_never_too_much(product: Product) -> None:
    source = requisition(product)
    assert act(product, "examine", source.result_bill_id, CHEN, "purchase_requisition").code == C.EXECUTED
    (line,) = product.ask(oracle.rows, "pur_requisitionline", sParentId=source.result_bill_id)
    supplier = product.ask(oracle.rows, "elesupplier", sBrandsId="B001", bInvalid=0)[0]

    def order(quantity: int) -> dict[str, Any]:
        reference = {
            "formId": "purchase_requisition",
            "record": source.result_bill_id,
            "lines": [{"id": line.sId, "quantity": quantity}],
        }
        return {
            "form_id": "purchase_order",
            "op_type": "generate",
            "source_ref": reference,
            "payload": {"supplier": supplier.sSupplierNo},
        }

    codes = both(product, CHEN, **order(60))
    assert codes[0] == C.EXECUTED
    assert codes[1] in (C.RULE_REFUSED, C.CONFLICT)
    (after,) = product.ask(oracle.rows, "pur_requisitionline", sParentId=source.result_bill_id)
    assert after.dOrderedQuantity == 60
    with pytest.raises(OpstageError):
        product.stage(CHEN, **order(41))
    rest = product.run(CHEN, **order(40))
    assert rest.code == C.EXECUTED, rest.error_message


def test_numbers_have_no_gap_whatever_fails_between(product: Product) -> None:
    first = bill(product, created(product)).sBillNo
    taken = title()
    created(product, title=taken)
    with pytest.raises(OpstageError) as refusal:
        created(product, title=taken)
    assert refusal.value.code is ErrorCode.POSSIBLE_DUPLICATE
    last = bill(product, created(product)).sBillNo
    assert int(last[9:]) == int(first[9:]) + 2


def test_the_person_may_insist_on_a_possible_duplicate(product: Product) -> None:
    same = quotation(product)
    assert product.run(LIN, form_id="quotation", op_type="create", payload=same).code == C.EXECUTED
    # An agent cannot: what it says about duplicates is not the person's word.
    request = PrepareRequest(form_id="quotation", op_type="create", payload=same, allow_duplicate=True)
    prepared = product.services.prepare.prepare(Actor(B001, LIN, ActorKind.AGENT), request)
    assert [w.code for w in prepared.preview.warnings] == ["possible_duplicate"]
    with pytest.raises(OpstageError) as refusal:
        product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    assert refusal.value.code is ErrorCode.POSSIBLE_DUPLICATE
    assert len(refusal.value.candidates) == 1
    insists = ConfirmRequest(allow_duplicate=True)
    (again,) = product.services.confirm.confirm(person(LIN), prepared.preparation_id, insists)
    ended = product.ended(LIN, again.id)
    assert ended.code == C.EXECUTED, ended.error_message


def test_two_confirmed_twins_of_a_natural_key_do_not_both_happen(product: Product) -> None:
    codes = both(product, LIN, form_id="quotation", op_type="create", payload=quotation(product))
    assert codes == [C.EXECUTED, C.CONFLICT]


def test_edits_on_the_card_are_what_is_executed(product: Product) -> None:
    edited = ConfirmRequest(edits={"contact": "改过的联系人"})
    staged = product.stage(
        LIN, form_id="quotation", op_type="create", payload=quotation(product), confirm=edited
    )
    done = product.ended(LIN, staged.id)
    assert bill(product, done).sContact == "改过的联系人"


def test_a_bad_edit_is_refused_and_nothing_is_inserted(product: Product) -> None:
    agent = Actor(B001, LIN, ActorKind.AGENT)
    request = PrepareRequest(form_id="quotation", op_type="create", payload=quotation(product))
    prepared = product.services.prepare.prepare(agent, request)
    for edits in (
        {"validDays": 0},
        {"billNo": "X"},
        {"nonsense": 1},
        {"totalAmount": "1"},
        {"sBrandsId": "B002"},
    ):
        with pytest.raises(OpstageError):
            product.services.confirm.confirm(
                person(LIN), prepared.preparation_id, ConfirmRequest(edits=edits)
            )
    (operation,) = product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    assert product.ended(LIN, operation.id).code == C.EXECUTED


def test_a_row_of_plain_sql_is_executed_like_any_other(product: Product) -> None:
    customer = product.ask(facts.a_customer, "B001")
    row = {"sOpType": "update", "sTargetFormId": "customer", "sTargetBillId": customer.sId}
    op_id = product.foreign(LIN, sId=new_id(), sPayload='{"contact": "李小姐"}', **row)
    done = product.ended(LIN, op_id)
    assert done.code == C.EXECUTED, done.error_message
    assert product.ask(oracle.one, "elecustomer", sId=customer.sId).sContact == "李小姐"
    events = product.services.inspect.events(person(LIN), op_id)
    assert [e.seq for e in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"sPayload": '{"contact": "a", "contact": "b"}'}, C.PAYLOAD_INVALID),
        ({"sPayload": '{"creditLimit": "1,000"}'}, C.PAYLOAD_INVALID),
        ({"sPayload": '{"sBrandsId": "B002"}'}, C.PAYLOAD_INVALID),
        ({"sPayload": "not json"}, C.PAYLOAD_INVALID),
        ({"sTargetBillId": "no-such-record"}, C.NOT_FOUND),
        ({"sTargetFormId": "no_such_form"}, C.NOT_FOUND),
        ({"sMakePerson": "u-zhou"}, C.FORBIDDEN),
        ({"sOpType": "delete"}, C.FORBIDDEN),
        ({"sBrandsId": "B002", "sMakePerson": "u-gao"}, C.NOT_FOUND),
    ],
)
def test_a_bad_row_of_plain_sql_ends_with_its_code(product: Product, values: dict[str, Any], code: C) -> None:
    customer = product.ask(facts.a_customer, "B001")
    row = {"sOpType": "update", "sTargetFormId": "customer", "sTargetBillId": customer.sId, "sPayload": "{}"}
    maker = values.get("sMakePerson", LIN)
    before = product.ask(oracle.counts)
    op_id = product.foreign(maker, **{"sId": new_id(), **row, **values})
    actor = person(maker, B002 if values.get("sBrandsId") == "B002" else B001)
    done = product.ended_as(actor, op_id)
    assert done.code == code, done.error_message
    assert done.error_message
    assert product.ask(oracle.counts) == before


def test_a_manual_form_waits_for_the_user_and_completes(product: Product) -> None:
    supplier = product.ask(oracle.rows, "elesupplier", sBrandsId="B001", bInvalid=0)[0]
    place = product.ask(facts.a_stocked_place, "B001")
    line = {"product": place.product_no, "process": "覆膜", "quantity": 10, "price": "0.3"}
    payload = {"supplier": supplier.sSupplierNo, "lines": [line]}
    staged = product.stage(CHEN, form_id="outsource_order", op_type="create", payload=payload)
    assert staged.code == C.WAITING_USER
    assert staged.id in [o.id for o in product.services.inspect.todos(person(CHEN)).waiting]
    erp = Actor(B001, "erp", ActorKind.SERVICE)
    done = product.services.control.complete(erp, staged.id, result_bill_id="made-by-hand")
    assert (done.code, done.result_bill_id) == (C.EXECUTED, "made-by-hand")
    with pytest.raises(OpstageError):
        product.services.control.complete(erp, staged.id, result_bill_id="again")


def test_a_second_person_approves(product: Product) -> None:
    payload = {"name": f"新供应商 {secrets.token_hex(3)}", "type": "paper"}
    staged = product.stage(CHEN, form_id="supplier", op_type="create", payload=payload)
    assert staged.code == C.WAITING_APPROVAL
    with pytest.raises(OpstageError):
        product.services.control.approve(person(CHEN), staged.id)
    with pytest.raises(OpstageError):
        product.services.control.approve(Actor(B001, "u-qian", ActorKind.AGENT), staged.id)
    product.services.control.approve(person("u-qian"), staged.id)
    assert product.ended(CHEN, staged.id).code == C.EXECUTED
    rejected = product.stage(CHEN, form_id="supplier", op_type="create", payload={**payload, "name": title()})
    product.services.control.reject(person("u-qian"), rejected.id, "重复建档")
    ended = product.ended(CHEN, rejected.id)
    assert (ended.code, ended.error_message) == (C.CANCELLED, "重复建档")


def test_several_operations_are_confirmed_in_one_transaction(product: Product) -> None:
    agent = Actor(B001, LIN, ActorKind.AGENT)
    items = [
        {"form_id": "quotation", "op_type": "create", "payload": quotation(product)},
        {"form_id": "quotation", "op_type": "create", "payload": quotation(product), "depends_on": ["#1"]},
    ]
    prepared = product.services.prepare.prepare(agent, PrepareRequest(items=items))  # type: ignore[arg-type]
    assert len(prepared.items) == 2
    confirmed = product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    again = product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    assert [o.id for o in confirmed] == [o.id for o in again]
    assert {product.ended(LIN, o.id).code for o in confirmed} == {C.EXECUTED}
    codes = [[e.code for e in product.services.inspect.events(person(LIN), o.id)] for o in confirmed]
    assert codes[1][:2] == [
        C.WAITING_OTHER,
        C.SUBMITTED,
    ]  # a quick worker may have ended both before the answer
    assert codes[0][0] == C.SUBMITTED


def test_a_stale_update_says_what_changed(product: Product) -> None:
    done = created(product)
    agent = Actor(B001, LIN, ActorKind.AGENT)
    request = PrepareRequest(
        form_id="quotation", op_type="update", record=done.result_bill_id or "", payload={"contact": "张"}
    )
    prepared = product.services.prepare.prepare(agent, request)
    with product.erp.begin() as connection:
        facts.colleague_edits(connection, str(done.result_bill_id), "李")
    with pytest.raises(OpstageError) as refusal:
        product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    assert refusal.value.code is ErrorCode.VERSION_CONFLICT
    (change,) = refusal.value.conflict
    assert (change["field"], change["now"], change["proposed"]) == ("contact", "李", "张")
    assert bill(product, done).sContact == "李"


def test_an_unrelated_edit_does_not_spoil_a_proposal(product: Product) -> None:
    done = created(product)
    agent = Actor(B001, LIN, ActorKind.AGENT)
    request = PrepareRequest(
        form_id="quotation", op_type="update", record=done.result_bill_id or "", payload={"validDays": 60}
    )
    prepared = product.services.prepare.prepare(agent, request)
    with product.erp.begin() as connection:
        facts.colleague_edits(connection, str(done.result_bill_id), "李")
    (operation,) = product.services.confirm.confirm(person(LIN), prepared.preparation_id)
    assert product.ended(LIN, operation.id).code == C.EXECUTED
    row = bill(product, done)
    assert (row.sContact, row.iValidDays) == ("李", 60)


def test_the_ledger_has_one_row_for_each_effect(product: Product) -> None:
    from workers.erp.tables import erp_metadata

    done = created(product)
    ledger = erp_metadata.tables["ai_op_ledger"]
    with product.erp.connect() as connection:
        rows = connection.execute(select(ledger).where(ledger.c.sOpId == done.id)).all()
    assert [(r.sIdempotencyKey, r.sPayloadHash) for r in rows] == [(done.idempotency_key, done.payload_hash)]
