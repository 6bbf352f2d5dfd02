"""Examine, invalid and their reverse: one guarded UPDATE; of two that race, one is told why not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from tests.support.small_erp import NOW, OTHER_TENANT, TENANT, SmallErp, order, quote, requisition

WANG = Actor(TENANT, "u-wang")


@pytest.fixture
def bill(erp: SmallErp) -> str:
    return erp.run("quote", "create", payload={"title": "名片"}).result_bill_id


def state(erp: SmallErp) -> dict[str, Any]:
    row = erp.one(quote)
    return {
        k: row[k]
        for k in ("bCheck", "sCheckPerson", "tCheckDate", "bInvalid", "sInvalidPerson", "tInvalidDate")
    }


CLEAR = dict.fromkeys(("sCheckPerson", "tCheckDate", "sInvalidPerson", "tInvalidDate")) | {
    "bCheck": 0,
    "bInvalid": 0,
}


def test_examine_says_who_and_when_and_its_reverse_takes_that_back(erp: SmallErp, bill: str) -> None:
    before = erp.one(quote)
    outcome = erp.run("quote", "examine", target=bill, actor=WANG)
    assert state(erp) == CLEAR | {"bCheck": 1, "sCheckPerson": "u-wang", "tCheckDate": NOW}
    assert outcome.result_bill_id == bill
    assert outcome.message == {"zh": "已审核报价单 BJD202612001", "en": "Quotation BJD202612001 examined"}
    erp.run("quote", "cancelExamine", target=bill)
    assert erp.one(quote) == before


def test_invalid_says_who_and_when_and_its_reverse_takes_that_back(erp: SmallErp, bill: str) -> None:
    before = erp.one(quote)
    erp.run("quote", "invalid", target=bill, actor=WANG)
    assert state(erp) == CLEAR | {"bInvalid": 1, "sInvalidPerson": "u-wang", "tInvalidDate": NOW}
    erp.run("quote", "cancelInvalid", target=bill)
    assert erp.one(quote) == before


@pytest.mark.parametrize(
    ("reached_by", "op", "why"),
    [
        ([], "cancelExamine", "单据尚未审核"),
        ([], "cancelInvalid", "单据未作废"),
        (["examine"], "examine", "单据已审核，请先取消审核"),
        (["examine"], "invalid", "单据已审核，请先取消审核"),
        (["examine"], "cancelInvalid", "单据未作废"),
        (["invalid"], "examine", "单据已作废"),
        (["invalid"], "cancelExamine", "单据已作废"),
        (["invalid"], "invalid", "单据已作废"),
    ],
)
def test_a_state_that_does_not_allow_the_operation_is_said_in_words(
    erp: SmallErp, bill: str, reached_by: list[str], op: str, why: str
) -> None:
    for step in reached_by:
        erp.run("quote", step, target=bill)
    error = erp.refusal("quote", op, target=bill)
    assert (error.code, error.message("zh")) == (ErrorCode.STATE_CONFLICT, why)


def test_an_empty_flag_of_an_older_row_counts_as_no(erp: SmallErp) -> None:
    erp.insert(quote, {"sId": "old", "sBillNo": "BJD202001001", "sTitle": "旧"})
    erp.run("quote", "examine", target="old")
    assert state(erp)["bCheck"] == 1


def test_of_two_examines_at_once_exactly_one_succeeds(
    erp: SmallErp, bill: str, threads: ThreadPoolExecutor
) -> None:
    def attempt(person: str) -> str:
        try:
            erp.run("quote", "examine", target=bill, actor=Actor(TENANT, person))
        except Refused as refused:
            return refused.code.value
        return person

    answers = list(threads.map(attempt, [f"u-{n}" for n in range(8)]))
    assert answers.count("state_conflict") == 7
    (winner,) = [a for a in answers if a != "state_conflict"]
    assert state(erp)["sCheckPerson"] == winner


def test_a_record_others_build_on_is_locked_until_they_are_invalid(erp: SmallErp) -> None:
    line = {"product": "p1", "quantity": "10.000", "price": "1"}
    source = erp.run("requisition", "create", payload={"lines": [line]}).result_bill_id
    erp.run("requisition", "examine", target=source)
    erp.insert(order, {"sId": "o1", "sBillNo": "CGD202611001", "sRequisitionId": source})
    error = erp.refusal("requisition", "cancelExamine", target=source)
    assert error.code is ErrorCode.STATE_CONFLICT
    assert error.message("zh") == "已被采购订单“CGD202611001”引用，请先作废该单据"
    erp.run("order", "invalid", target="o1")
    erp.run("requisition", "cancelExamine", target=source)
    assert erp.one(requisition)["bCheck"] == 0


def test_a_reference_from_another_tenant_does_not_lock(erp: SmallErp) -> None:
    source = erp.run("requisition", "create", payload={"lines": []}).result_bill_id
    erp.insert(order, {"sId": "o1", "sRequisitionId": source, "sBillNo": "X"}, tenant=OTHER_TENANT)
    erp.run("requisition", "invalid", target=source)
    assert erp.one(requisition)["bInvalid"] == 1
