"""Create: master, lines and lines below in one transaction, exact to the last digit, on three engines."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import StatementError

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from tests.support.small_erp import NOW, OTHER_TENANT, TENANT, SmallErp, part, product, quote, tier

PAYLOAD: dict[str, Any] = {
    "title": "名片 😀",
    "memo": None,
    "delivery": "2026-12-24",
    "sentAt": "2026-11-30T08:00:00.5Z",
    "urgent": True,
    "factor": "1.1300",
    "total": "0.01",  # computed: what a payload says of it does not count
    "parts": [
        {
            "name": "封面",
            "quantity": "1000.000",
            "price": "0.3335",
            "tiers": [
                {"quantity": "5000.000", "price": "0.3000"},
                {"quantity": "9000.000", "price": "0.2500"},
            ],
        },
        {"name": "内页", "quantity": Decimal(3), "price": "0.0050", "tiers": []},
    ],
}


def test_a_create_writes_master_lines_and_lines_below_with_everything_the_erp_expects(erp: SmallErp) -> None:
    outcome = erp.run("quote", "create", payload=PAYLOAD)
    master = erp.one(quote)
    assert master == {
        "sId": outcome.result_bill_id,
        "sBrandsId": TENANT.brands_id,
        "sSubsidiaryId": TENANT.subsidiary_id,
        "sBillNo": "BJD202612001",  # the tenant's date, not UTC's
        "sTitle": "名片 😀",
        "sMemo": None,
        "tDelivery": date(2026, 12, 24),
        "tSentAt": datetime.fromisoformat("2026-11-30T08:00:00.5Z"),
        "iDays": 30,  # not given: the column's default
        "bUrgent": 1,
        "dTotal": Decimal("333.52"),
        "dFactor": Decimal("1.1300"),
        "dGross": Decimal("376.88"),
        "sMakePerson": "u-lin",
        "tCreateDate": NOW,
        "sModifyPerson": None,
        "tModifyDate": None,
        "bCheck": 0,
        "sCheckPerson": None,
        "tCheckDate": None,
        "bInvalid": 0,
        "sInvalidPerson": None,
        "tInvalidDate": None,
    }
    assert outcome.message == {"zh": "已创建报价单 BJD202612001", "en": "Quotation BJD202612001 created"}
    assert outcome.result["number"] == "BJD202612001"
    parts = erp.rows(part)
    assert [(p["sName"], p["iOrder"], p["sParentId"], p["dAmount"]) for p in parts] == [
        ("封面", 1, outcome.result_bill_id, Decimal("333.50")),
        ("内页", 2, outcome.result_bill_id, Decimal("0.02")),  # 0.015 rounded half-up
    ]
    assert {(p["sBrandsId"], p["sSubsidiaryId"]) for p in parts} == {(TENANT.brands_id, TENANT.subsidiary_id)}
    tiers = erp.rows(tier)
    assert [(t["iOrder"], t["sParentId"], t["dAmount"]) for t in tiers] == [
        (1, parts[0]["sId"], Decimal("1500.00")),
        (2, parts[0]["sId"], Decimal("2250.00")),
    ]
    keys = [master["sId"], *(row["sId"] for row in (*parts, *tiers))]
    assert len(set(keys)) == 5
    assert all(len(key) == 32 and int(key, 16) for key in keys)


def test_amounts_of_18_digits_are_stored_and_added_up_exactly(erp: SmallErp) -> None:
    lines = [
        {"name": "a", "quantity": "1.000", "price": "12345678901234.5678"},
        {"name": "b", "quantity": "1.000", "price": "12345678901234.5678"},
        {"name": "c", "quantity": "0.100", "price": "0.1000"},
        {"name": "d", "quantity": "0.200", "price": "0.1000"},
    ]
    erp.run("quote", "create", payload={"title": "x", "parts": lines})
    assert [p["dAmount"] for p in erp.rows(part)] == [
        Decimal("12345678901234.57"),
        Decimal("12345678901234.57"),
        Decimal("0.01"),
        Decimal("0.02"),
    ]
    assert erp.rows(part)[0]["dPrice"] == Decimal("12345678901234.5678")
    assert erp.one(quote)["dTotal"] == Decimal("24691357802469.17")
    assert erp.one(quote)["dGross"] is None  # no factor given


def test_a_form_without_number_maker_or_states_needs_none(erp: SmallErp) -> None:
    outcome = erp.run("product", "create", payload={"name": "铜版纸"})
    assert erp.one(product)["sName"] == "铜版纸"
    assert outcome.message["zh"] == "已创建产品"
    assert "number" not in outcome.result


def test_a_create_that_fails_at_its_last_line_leaves_nothing_not_even_a_used_number(erp: SmallErp) -> None:
    before = erp.snapshot()
    bad = {
        "title": "x",
        "parts": [{"name": "ok", "quantity": "1.000", "price": "1"}, {"name": "bad", "quantity": 0.5}],
    }
    with pytest.raises(TypeError):
        erp.run("quote", "create", payload=bad)
    too_exact = {"title": "x", "parts": [{"name": "bad", "quantity": "0.0001", "price": "1"}]}
    with pytest.raises(StatementError, match="does not fit"):
        erp.run("quote", "create", payload=too_exact)
    assert erp.snapshot() == before
    assert erp.run("quote", "create", payload={"title": "x"}).result["number"] == "BJD202612001"


def test_system_columns_come_from_the_operation_whatever_the_payload_holds(erp: SmallErp) -> None:
    payload = {
        "title": "x",
        "billNo": "HACK-1",
        "sBrandsId": "2222222222",
        "id": "mine",
        "sId": "mine",
        "bCheck": 1,
    }
    outcome = erp.run("quote", "create", payload=payload, actor=Actor(OTHER_TENANT, "u-wang"))
    row = erp.one(quote)
    assert (row["sId"], row["sBillNo"]) == (outcome.result_bill_id, "BJD202612001")
    assert (row["sBrandsId"], row["sMakePerson"], row["bCheck"]) == (OTHER_TENANT.brands_id, "u-wang", 0)


def test_an_operation_type_without_policy_is_denied(erp: SmallErp) -> None:
    with pytest.raises(Refused) as refused:
        erp.run("product", "update", payload={"name": "x"}, target="p1")
    assert refused.value.code is ErrorCode.FORBIDDEN


def test_a_create_of_many_lines_takes_few_statements(erp: SmallErp) -> None:
    lines = [
        {"name": f"p{n}", "quantity": "1.000", "price": "1.0000", "tiers": [{"quantity": "2.000"}]}
        for n in range(100)
    ]
    erp.run("quote", "create", payload={"title": "counter row"})
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(erp.engine, "before_cursor_execute", note)
    erp.run("quote", "create", payload={"title": "x", "parts": lines})
    event.remove(erp.engine, "before_cursor_execute", note)
    # counter, number taken?, master, lines, lines below; on SQLite also how the transaction begins
    assert len([s for s in seen if not s.startswith(("PRAGMA", "BEGIN"))]) == 5, seen
    assert len(erp.rows(tier)) == 100
