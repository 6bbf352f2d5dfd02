"""Update and delete: only what was given changes, with what is computed from it; lines change, come and go."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from tests.support.small_erp import (
    FORMS,
    NOW,
    OTHER_TENANT,
    TENANT,
    SmallErp,
    order,
    order_line,
    part,
    quote,
    requisition_line,
    tier,
)
from workers.erp.sql.record_write import delete_record

PARTS = [
    {
        "name": "封面",
        "quantity": "1000.000",
        "price": "0.5000",
        "tiers": [{"quantity": "5.000", "price": "2.0000"}],
    },
    {
        "name": "内页",
        "quantity": "10.000",
        "price": "1.0000",
        "tiers": [{"quantity": "7.000", "price": "3.0000"}],
    },
]


@pytest.fixture
def bill(erp: SmallErp) -> str:
    """A quotation of two parts: 500.00 + 10.00, factor 2."""
    payload = {"title": "名片", "memo": "旧", "factor": "2.0000", "parts": PARTS}
    return erp.run("quote", "create", payload=payload).result_bill_id


def parts_by_name(erp: SmallErp) -> Mapping[str, dict[str, Any]]:
    return {row["sName"]: row for row in erp.rows(part)}


def test_only_the_given_fields_and_the_modified_stamp_change(erp: SmallErp, bill: str) -> None:
    before, lines = erp.one(quote), erp.rows(part)
    erp.run(
        "quote", "update", target=bill, payload={"title": "画册", "memo": None}, actor=Actor(TENANT, "u-wang")
    )
    changed = {"sTitle": "画册", "sMemo": None, "sModifyPerson": "u-wang", "tModifyDate": NOW}
    assert erp.one(quote) == before | changed
    assert erp.rows(part) == lines


def test_a_field_that_a_computed_one_depends_on_changes_it_without_touching_lines(
    erp: SmallErp, bill: str
) -> None:
    shown = {
        "factor": "3.0000",
        "gross": "1.00",
        "total": "2.00",
    }  # what a payload says of computed fields is no input
    erp.run("quote", "update", target=bill, payload=shown)
    row = erp.one(quote)
    assert (row["dTotal"], row["dGross"]) == (Decimal("510.00"), Decimal("1530.00"))


def test_lines_are_changed_added_and_removed_in_one_operation_and_totals_follow(
    erp: SmallErp, bill: str
) -> None:
    cover, inner = (parts_by_name(erp)[name] for name in ("封面", "内页"))
    payload = {
        "parts": [
            {"id": cover["sId"], "quantity": "2000.000"},
            {"id": inner["sId"], "remove": True},
            {
                "name": "腰封",
                "quantity": "4.000",
                "price": "0.2500",
                "tiers": [{"quantity": "1.000", "price": "9.0000"}],
            },
        ]
    }
    erp.run("quote", "update", target=bill, payload=payload)
    now = parts_by_name(erp)
    assert now["封面"] == cover | {"dQuantity": Decimal("2000.000"), "dAmount": Decimal("1000.00")}
    assert set(now) == {"封面", "腰封"}
    assert (now["腰封"]["iOrder"], now["腰封"]["dAmount"], now["腰封"]["sParentId"]) == (
        3,
        Decimal("1.00"),
        bill,
    )
    tiers = {row["sParentId"]: row for row in erp.rows(tier)}
    assert set(tiers) == {cover["sId"], now["腰封"]["sId"]}  # the removed line's tiers went with it
    row = erp.one(quote)
    assert (row["dTotal"], row["dGross"]) == (Decimal("1001.00"), Decimal("2002.00"))


def test_lines_below_a_line_are_changed_without_the_line_being_named_twice(erp: SmallErp, bill: str) -> None:
    cover = parts_by_name(erp)["封面"]
    (old,) = erp.rows(tier, sParentId=cover["sId"])
    below = [{"id": old["sId"], "price": "2.5000"}, {"quantity": "1.000", "price": "1.0000"}]
    erp.run("quote", "update", target=bill, payload={"parts": [{"id": cover["sId"], "tiers": below}]})
    changed, added = erp.rows(tier, sParentId=cover["sId"])
    assert changed == old | {"dPrice": Decimal("2.5000"), "dAmount": Decimal("12.50")}
    assert (added["iOrder"], added["dAmount"]) == (2, Decimal("1.00"))
    assert parts_by_name(erp)["封面"] == cover
    assert erp.one(quote)["dTotal"] == Decimal("510.00")
    erp.run(
        "quote",
        "update",
        target=bill,
        payload={"parts": [{"id": cover["sId"], "tiers": [{"id": old["sId"], "remove": True}]}]},
    )
    assert erp.rows(tier, sParentId=cover["sId"]) == [added]


def test_many_lines_changed_alike_are_all_changed_or_none(erp: SmallErp, bill: str) -> None:
    cheaper = [{"id": row["sId"], "price": "0.1000"} for row in erp.rows(part)]
    erp.run("quote", "update", target=bill, payload={"parts": cheaper})
    assert [row["dAmount"] for row in erp.rows(part)] == [Decimal("100.00"), Decimal("1.00")]
    assert erp.one(quote)["dTotal"] == Decimal("101.00")
    lost = [*cheaper, {"id": "nowhere", "price": "0.1000"}]
    assert (
        erp.refusal("quote", "update", target=bill, payload={"parts": lost}).code
        is ErrorCode.VERSION_CONFLICT
    )


def test_a_line_that_is_gone_or_belongs_elsewhere_is_a_version_conflict(erp: SmallErp, bill: str) -> None:
    other = erp.run("quote", "create", payload={"title": "别的", "parts": PARTS}).result_bill_id
    (foreign, _) = erp.rows(part, sParentId=other)
    for line in (
        {"id": "nowhere", "price": "1"},
        {"id": foreign["sId"], "price": "1"},
        {"id": foreign["sId"], "remove": True},
    ):
        error = erp.refusal("quote", "update", target=bill, payload={"title": "x", "parts": [line]})
        assert error.code is ErrorCode.VERSION_CONFLICT


def test_two_updates_cannot_together_remove_the_last_line(erp: SmallErp, bill: str) -> None:
    first, second = erp.rows(part)
    erp.run("quote", "update", target=bill, payload={"parts": [{"id": first["sId"], "remove": True}]})
    error = erp.refusal(
        "quote", "update", target=bill, payload={"parts": [{"id": second["sId"], "remove": True}]}
    )
    assert error.code is ErrorCode.BUSINESS_RULE
    assert error.message("zh") == "明细应有1至500行，现为0行"


@pytest.mark.parametrize("op", ["update", "delete", "examine", "invalid"])
def test_another_tenants_record_is_not_found(erp: SmallErp, bill: str, op: str) -> None:
    stranger = Actor(OTHER_TENANT, "u-zhao")
    error = erp.refusal("quote", op, target=bill, payload={"title": "x"}, actor=stranger)
    assert error.code is ErrorCode.RECORD_NOT_FOUND
    assert erp.refusal("quote", op, target="nowhere").code is ErrorCode.RECORD_NOT_FOUND


def test_an_examined_or_invalid_record_is_neither_updated_nor_deleted(erp: SmallErp, bill: str) -> None:
    erp.run("quote", "examine", target=bill)
    for op in ("update", "delete"):
        error = erp.refusal("quote", op, target=bill, payload={"title": "x"})
        assert (error.code, error.message("zh")) == (ErrorCode.STATE_CONFLICT, "单据已审核，请先取消审核")
    erp.run("quote", "cancelExamine", target=bill)
    erp.run("quote", "invalid", target=bill)
    for op in ("update", "delete"):
        error = erp.refusal("quote", op, target=bill, payload={"title": "x"})
        assert (error.code, error.message("en")) == (ErrorCode.STATE_CONFLICT, "The record is invalid")


def test_a_delete_makes_invalid_and_keeps_the_rows(erp: SmallErp, bill: str) -> None:
    outcome = erp.run("quote", "delete", target=bill)
    row = erp.one(quote)
    assert (row["bInvalid"], row["sInvalidPerson"], row["tInvalidDate"]) == (1, "u-lin", NOW)
    assert len(erp.rows(part)) == 2
    assert outcome.message["zh"] == "已删除报价单 BJD202612001"


def test_a_physical_delete_removes_the_record_and_what_is_below_it_and_nothing_else(erp: SmallErp) -> None:
    lines = [
        {"product": "p1", "quantity": "1.000", "price": "1"},
        {"product": "p2", "quantity": "1.000", "price": "1"},
    ]
    doomed = erp.run("order", "create", payload={"supplier": "a", "lines": lines}).result_bill_id
    kept = erp.run("order", "create", payload={"supplier": "b", "lines": lines}).result_bill_id
    erp.run("order", "delete", target=doomed)
    assert erp.one(order)["sId"] == kept
    assert {row["sParentId"] for row in erp.rows(order_line)} == {kept}
    erp.run("order", "examine", target=kept)
    assert erp.refusal("order", "delete", target=kept).code is ErrorCode.STATE_CONFLICT


def test_lines_below_lines_go_first_in_a_physical_delete(erp: SmallErp, bill: str) -> None:
    with erp.engine.begin() as connection:
        delete_record(erp.context(connection), FORMS["quote"], bill, physical=True)
    assert (erp.rows(quote), erp.rows(part), erp.rows(tier)) == ([], [], [])


def test_a_source_line_still_covers_what_was_taken_from_it(erp: SmallErp) -> None:
    lines = [
        {"product": "p1", "quantity": "10.000", "price": "1"},
        {"product": "p2", "quantity": "5.000", "price": "1"},
    ]
    source = erp.run("requisition", "create", payload={"lines": lines}).result_bill_id
    taken, free = erp.rows(requisition_line)
    with erp.engine.begin() as connection:
        connection.execute(
            requisition_line.update().where(requisition_line.c.sId == taken["sId"]).values(dOrdered=6)
        )
    for line in ({"id": taken["sId"], "quantity": "5.999"}, {"id": taken["sId"], "remove": True}):
        error = erp.refusal("requisition", "update", target=source, payload={"lines": [line]})
        assert isinstance(error, Refused)
        assert "6.000" in error.message("zh")
    fine = [{"id": taken["sId"], "quantity": "6.000"}, {"id": free["sId"], "remove": True}]
    erp.run("requisition", "update", target=source, payload={"lines": fine})
    assert erp.one(requisition_line)["dQuantity"] == Decimal("6.000")
