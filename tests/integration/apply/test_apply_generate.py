"""Generate: the target from chosen source lines; what was taken is kept exactly and can never exceed what there is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from tests.support.small_erp import OTHER_TENANT, SmallErp, order, order_line, requisition_line


@pytest.fixture
def source(erp: SmallErp) -> str:
    """An examined requisition of 10 and 5."""
    lines = [
        {"product": "p1", "quantity": "10.000", "price": "1.2500"},
        {"product": "p2", "quantity": "5.000", "price": "3.0000"},
    ]
    made = erp.run("requisition", "create", payload={"lines": lines}).result_bill_id
    erp.run("requisition", "examine", target=made)
    return made


def chosen(erp: SmallErp, source: str, *quantities: str) -> dict[str, Any]:
    """``run``'s arguments for taking ``quantities`` of the source's lines in turn, as prepare would make them."""
    rows = list(zip(erp.rows(requisition_line, sParentId=source), quantities, strict=False))
    ref = {
        "formId": "requisition",
        "record": source,
        "lines": [{"id": r["sId"], "quantity": q} for r, q in rows],
    }
    lines = [{"product": r["sProductId"], "price": str(r["dPrice"]), "quantity": q} for r, q in rows]
    return {"source_ref": ref, "payload": {"lines": lines}}


def taken(erp: SmallErp) -> list[Decimal]:
    return [row["dOrdered"] for row in erp.rows(requisition_line)]


def test_the_target_is_made_from_the_chosen_lines_and_linked_to_them(erp: SmallErp, source: str) -> None:
    what = chosen(erp, source, "4.000", "5.000")
    what["payload"]["supplier"] = "晨光纸业"
    outcome = erp.run("order", "generate", **what)
    made = erp.one(order)
    assert (made["sId"], made["sBillNo"], made["sSupplier"], made["sRequisitionId"]) == (
        outcome.result_bill_id,
        "CGD202612001",
        "晨光纸业",
        source,
    )
    keys = [row["sId"] for row in erp.rows(requisition_line)]
    lines = [
        (r["sProductId"], r["dQuantity"], r["dPrice"], r["sSourceLineId"], r["iOrder"])
        for r in erp.rows(order_line)
    ]
    assert lines == [
        ("p1", Decimal("4.000"), Decimal("1.2500"), keys[0], 1),
        ("p2", Decimal("5.000"), Decimal("3.0000"), keys[1], 2),
    ]
    assert taken(erp) == [Decimal("4.000"), Decimal("5.000")]
    assert outcome.message["zh"] == "已生成采购订单 CGD202612001"


def test_the_lines_are_those_that_were_shown_one_for_each_source_line(erp: SmallErp, source: str) -> None:
    what = chosen(erp, source, "3.000")
    what["payload"]["lines"][0]["price"] = "9.0000"
    erp.run("order", "generate", **what)
    assert erp.one(order_line)["dPrice"] == Decimal("9.0000")
    assert taken(erp) == [Decimal("3.000"), Decimal(0)]
    for times in (0, 2):
        lines = what["payload"]["lines"] * times
        error = erp.refusal("order", "generate", source_ref=what["source_ref"], payload={"lines": lines})
        assert error.code is ErrorCode.FIELD_INVALID


def test_what_is_left_is_what_is_taken_next_and_not_a_thousandth_more(erp: SmallErp, source: str) -> None:
    erp.run("order", "generate", **chosen(erp, source, "9.999"))
    error = erp.refusal("order", "generate", **chosen(erp, source, "0.002"))
    assert error.code is ErrorCode.BUSINESS_RULE
    assert error.message("zh") == "来源第1行可用数量不足：可用 0.001，需要 0.002"
    erp.run("order", "generate", **chosen(erp, source, "0.001"))
    assert taken(erp)[0] == Decimal("10.000")


def test_a_line_chosen_twice_counts_twice(erp: SmallErp, source: str) -> None:
    ref = chosen(erp, source, "6.000")
    ref["source_ref"]["lines"] *= 2
    ref["payload"]["lines"] *= 2
    assert erp.refusal("order", "generate", **ref).code is ErrorCode.BUSINESS_RULE


def test_eighteen_digits_are_taken_exactly(erp: SmallErp) -> None:
    line = {"product": "p1", "quantity": "123456789012345.678", "price": "1"}
    made = erp.run("requisition", "create", payload={"lines": [line]}).result_bill_id
    erp.run("requisition", "examine", target=made)
    erp.run("order", "generate", **chosen(erp, made, "123456789012345.677"))
    assert taken(erp) == [Decimal("123456789012345.677")]
    erp.run("order", "generate", **chosen(erp, made, "0.001"))
    assert taken(erp) == [Decimal("123456789012345.678")]
    assert erp.refusal("order", "generate", **chosen(erp, made, "0.001")).code is ErrorCode.BUSINESS_RULE


def test_a_source_that_is_not_examined_or_not_ours_gives_nothing(erp: SmallErp, source: str) -> None:
    ref = chosen(erp, source, "1.000")
    stranger = Actor(OTHER_TENANT, "u-zhao")
    assert erp.refusal("order", "generate", **ref, actor=stranger).code is ErrorCode.RECORD_NOT_FOUND
    for wrong, code in (
        ({"lines": [{"id": "nowhere", "quantity": "1.000"}]}, ErrorCode.RECORD_NOT_FOUND),
        ({"formId": "quote"}, ErrorCode.FORM_NOT_FOUND),
    ):
        elsewhere = {**ref, "source_ref": {**ref["source_ref"], **wrong}}
        assert erp.refusal("order", "generate", **elsewhere).code is code
    erp.run("requisition", "cancelExamine", target=source)
    assert erp.refusal("order", "generate", **ref).code is ErrorCode.STATE_CONFLICT
    erp.run("requisition", "invalid", target=source)
    assert erp.refusal("order", "generate", **ref).code is ErrorCode.STATE_CONFLICT


def test_invalid_gives_back_what_was_taken_and_valid_again_takes_it_if_it_is_still_there(
    erp: SmallErp, source: str
) -> None:
    first = erp.run("order", "generate", **chosen(erp, source, "7.000")).result_bill_id
    erp.run("order", "invalid", target=first)
    assert taken(erp)[0] == 0
    second = erp.run("order", "generate", **chosen(erp, source, "4.000")).result_bill_id
    assert erp.refusal("order", "cancelInvalid", target=first).code is ErrorCode.BUSINESS_RULE
    erp.run("order", "delete", target=second)  # physical
    assert taken(erp)[0] == 0
    erp.run("order", "cancelInvalid", target=first)
    assert taken(erp)[0] == Decimal("7.000")


def test_a_changed_or_removed_line_moves_the_difference(erp: SmallErp, source: str) -> None:
    made = erp.run("order", "generate", **chosen(erp, source, "4.000", "5.000")).result_bill_id
    first, second = erp.rows(order_line)
    more = {"lines": [{"id": first["sId"], "quantity": "9.500"}, {"id": second["sId"], "remove": True}]}
    erp.run("order", "update", target=made, payload=more)
    assert taken(erp) == [Decimal("9.500"), Decimal(0)]
    too_much = {"lines": [{"id": first["sId"], "quantity": "10.001"}]}
    assert erp.refusal("order", "update", target=made, payload=too_much).code is ErrorCode.BUSINESS_RULE


def test_generates_at_once_never_take_more_than_there_is(
    erp: SmallErp, source: str, threads: ThreadPoolExecutor
) -> None:
    """Ten want 3 of each line (10 and 5): one gets both lines, and nobody a part of what he wanted."""
    ref = chosen(erp, source, "3.000", "3.000")

    def attempt(what: dict[str, Any]) -> bool:
        return erp.allowed("order", "generate", **what)

    assert list(threads.map(attempt, [ref] * 10)).count(True) == 1
    assert taken(erp) == [Decimal("3.000"), Decimal("3.000")]
    assert len(erp.rows(order_line)) == 2
    only_first = chosen(erp, source, "2.000")

    assert list(threads.map(attempt, [only_first] * 10)).count(True) == 3  # 3 + 3 × 2 of 10
    assert taken(erp)[0] == Decimal("9.000")
    assert sorted(row["sBillNo"] for row in erp.rows(order)) == [f"CGD20261200{n}" for n in range(1, 5)]


def test_a_source_cannot_lose_its_examination_under_a_generate(
    erp: SmallErp, source: str, threads: ThreadPoolExecutor
) -> None:
    """Whoever comes first wins, the other is told; never an order based on a requisition that is open again."""
    ref = chosen(erp, source, "1.000")

    def run(op: tuple[str, str]) -> str:
        try:
            erp.run(op[0], op[1], target=source, **ref)
        except Refused as refused:
            return refused.code.value
        return "done"

    for _ in range(10):
        answers = list(threads.map(run, [("order", "generate"), ("requisition", "cancelExamine")]))
        assert sorted(answers) == ["done", "state_conflict"]
        orders = erp.rows(order, bInvalid=0)
        if answers[0] == "done":
            erp.run("order", "invalid", target=orders[0]["sId"])
        else:
            erp.run("requisition", "examine", target=source)
    assert taken(erp)[0] == 0
