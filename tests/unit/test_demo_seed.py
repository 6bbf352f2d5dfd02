"""The demo's data is realistic in size, the same for the same seed, and different for another."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from workers.erp.demo.seed import build_rows
from workers.erp.demo.seed.masters import AMBIGUOUS_CUSTOMER
from workers.erp.demo.seed.people import USERS
from workers.erp.demo.seed.rows import Row


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return {table.name: values for table, values in build_rows().items()}


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    assert build_rows(7) == build_rows(7)
    assert build_rows(7) != build_rows(8)


def test_both_tenants_have_master_data_and_documents_of_every_kind(rows: dict[str, list[Row]]) -> None:
    for name, values in rows.items():
        assert {row["sBrandsId"] for row in values} == {"B001", "B002"}, name
    assert sum(len(values) for name, values in rows.items() if name.startswith("ele")) >= 300
    documents = [row for values in rows.values() for row in values if "sBillNo" in row]
    assert len(documents) >= 300


def test_ids_are_unique_over_all_tables(rows: dict[str, list[Row]]) -> None:
    ids = Counter(row["sId"] for values in rows.values() for row in values)
    assert [key for key, times in ids.items() if times > 1] == []


def test_exactly_two_customers_of_the_first_tenant_share_a_name(rows: dict[str, list[Row]]) -> None:
    names = Counter(row["sCustomerName"] for row in rows["elecustomer"] if row["sBrandsId"] == "B001")
    assert {name: times for name, times in names.items() if times > 1} == {AMBIGUOUS_CUSTOMER: 2}


def test_other_names_people_use_are_unique_in_their_tenant(rows: dict[str, list[Row]]) -> None:
    for table, column in (
        ("eleproduct", "sProductName"),
        ("elesupplier", "sSupplierName"),
        ("elewarehouse", "sWarehouseName"),
    ):
        names = Counter((row["sBrandsId"], row[column]) for row in rows[table])
        assert [name for name, times in names.items() if times > 1] == [], table


def test_everything_happened_in_2026_and_nothing_in_the_future_of_its_creation(
    rows: dict[str, list[Row]],
) -> None:
    for row in rows["sal_order"] + rows["pur_order"] + rows["quo_quotationmaster"]:
        assert datetime(2026, 1, 1, tzinfo=UTC) <= row["tCreateDate"] < datetime(2026, 11, 1, tzinfo=UTC)
        assert row["sBillNo"][3:9] == f"{row['tCreateDate']:%Y%m}"


def test_some_purchase_orders_need_approval_and_some_do_not(rows: dict[str, list[Row]]) -> None:
    above = sum(row["dTotalAmount"] > 50_000 for row in rows["pur_order"])
    assert 5 <= above <= len(rows["pur_order"]) - 5


def test_users_differ_in_what_they_may_do(rows: dict[str, list[Row]]) -> None:
    grants: dict[str, set[tuple[str, str]]] = {user: set() for users in USERS.values() for user in users}
    for row in rows["sys_grant"]:
        grants[row["sUserId"]].add((row["sFormId"], row["sOpType"]))
    assert grants["u-zhao"] == grants["u-gao"] == {("*", "*")}
    assert grants["u-sun"] == {("*", "read")}
    assert grants["u-zhou"] == set()
    assert ("quotation", "create") in grants["u-lin"]
    assert ("purchase_order", "approve") in grants["u-qian"] - grants["u-chen"]
    assert ("stock_adjustment", "create") in grants["u-wang"] - grants["u-lin"]
