"""The demo ERP's domain queries: exact, within tenant and grants, and true to what their descriptions say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import insert, update

from staging.contracts.error import ErrorCode as E
from staging.contracts.query import QueryRequest, QueryResult
from staging.domain.errors import ValidationFailed
from staging.domain.identity import Actor, Tenant
from tests.databases import KINDS
from tests.support.demo_erp import FIRST, SECOND, DemoErp, demo_erp, refused
from tests.support.demo_requests import word
from workers.erp.demo import oracle
from workers.erp.demo.queries import customer_purchases
from workers.erp.demo.schema import products, system, trade
from workers.erp.demo.seed.masters import AMBIGUOUS_CUSTOMER

ORDER = "erp.sales_order.create"
NAMES = ["orders", "customer_purchases", "quote", "quote_comparison"]


@pytest.fixture(scope="module", params=KINDS)
def erp(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoErp]:
    with demo_erp(request.param, tmp_path_factory.mktemp("demo")) as made:
        yield made


def ask(
    erp: DemoErp,
    query: str,
    filter: dict[str, Any] | None = None,  # noqa: A002 - the framework's own word
    *,
    user: str = "u-sun",
    tenant: Tenant = FIRST,
    locale: str = "en",
    **request: Any,
) -> QueryResult:
    asked = QueryRequest.model_validate({"filter": filter or {}, **request})
    return erp.adapter.run_query(Actor(tenant, user, locale=locale), query, asked)


def rows_of(erp: DemoErp, table: str, brands: str = "B001", **equal: Any) -> list[Any]:
    with erp.reading() as connection:
        return oracle.rows(connection, table, sBrandsId=brands, **equal)


def new_customer(erp: DemoErp) -> str:
    return erp.run("u-lin", "erp.customer.create", payload={"name": word(), "type": "direct"}).result_bill_id


def ordered(erp: DemoErp, customer: str, on: str, *lines: tuple[str, str]) -> str:
    """A sales order taken on that day; its id."""
    wanted = [{"product": product, "quantity": quantity} for product, quantity in lines]
    payload = {"customer": customer, "orderDate": on, "lines": wanted, "customerPoNo": word()}
    return erp.run("u-lin", ORDER, payload=payload).result_bill_id


def set_price(erp: DemoErp, product: str, price: str) -> None:
    table = products.product
    with erp.engine.begin() as connection:
        where = (table.c.sProductNo == product) & (table.c.sBrandsId == "B001")
        connection.execute(update(table).where(where).values(dPrice=Decimal(price)))


def set_amount(erp: DemoErp, order: str, amount: str) -> None:
    """Of all lines of an order: what no price would give, to see whether sums are exact."""
    table = trade.sales_order_line
    with erp.engine.begin() as connection:
        connection.execute(update(table).where(table.c.sParentId == order).values(dAmount=Decimal(amount)))


# ---------------------------------------------------------------------------------------------------- orders
def test_orders_are_those_of_the_customer_with_their_lines(erp: DemoErp) -> None:
    customer = rows_of(erp, "elecustomer", sCustomerNo="KH0003")[0]
    expected = {row.sId: row for row in rows_of(erp, "sal_order", sCustomerId=customer.sId)}
    assert expected
    found = ask(erp, "orders", {"customer": customer.sCustomerName})
    assert {item["id"] for item in found.items} == set(expected)
    assert found.page.total == len(expected)
    for item in found.items:
        row = expected[item["id"]]
        assert (item["billNo"], Decimal(item["totalAmount"])) == (row.sBillNo, row.dTotalAmount)
        assert item["orderDate"] == row.tOrderDate.isoformat()
        lines = rows_of(erp, "sal_orderline", sParentId=row.sId)
        assert sorted(Decimal(line["amount"]) for line in item["lines"]) == sorted(
            row.dAmount for row in lines
        )
        assert item["customerName"] == f"KH0003 {customer.sCustomerName}"
    days = [item["orderDate"] for item in found.items]
    assert days == sorted(days, reverse=True)
    assert [(s.field, s.direction) for s in found.applied_sort] == [("orderDate", "DESC"), ("id", "DESC")]


def test_orders_by_product_date_and_status(erp: DemoErp) -> None:
    customer = new_customer(erp)
    early = ordered(erp, customer, "2026-03-01", ("CP00001", "2"), ("CP00002", "3"))
    late = ordered(erp, customer, "2026-03-31", ("CP00002", "1"))
    gone = ordered(erp, customer, "2026-04-01", ("CP00001", "1"))
    erp.run("u-lin", "erp.sales_order.examine", record=late)
    erp.run("u-lin", "erp.sales_order.cancel", record=gone)

    def ids(**more: Any) -> list[str]:
        return [item["id"] for item in ask(erp, "orders", {"customer": customer, **more}).items]

    assert ids() == [gone, late, early]
    assert ids(product="CP00001") == [gone, early]
    assert ids(product=["CP00001", "CP00002"]) == [gone, late, early]
    assert ids(orderDate={"from": "2026-03-01", "to": "2026-03-31"}) == [late, early]
    assert ids(orderDate={"from": "2026-03-02"}) == [gone, late]
    assert ids(status="cancelled") == [gone]
    assert ids(status=["draft", "examined"]) == [late, early]
    assert ids(status="examined", product="CP00001") == []
    (shown,) = ask(erp, "orders", {"customer": customer, "status": "examined"}, locale="zh").items
    assert (shown["status"], shown["statusText"]) == ("examined", "已审核")


def test_an_order_keeps_its_price_and_a_quote_has_todays(erp: DemoErp) -> None:
    customer = new_customer(erp)
    order = ordered(erp, customer, "2026-05-05", ("CP00006", "120"))
    before = ask(erp, "orders", {"customer": customer}).items[0]["lines"][0]
    wanted = {"customer": customer, "lines": [{"product": "CP00006", "quantity": "120"}]}
    assert ask(erp, "quote", wanted).items[0]["amount"] == before["amount"]
    set_price(erp, "CP00006", "100.0001")
    (after,) = ask(erp, "orders", {"customer": customer}).items
    assert after["id"] == order
    assert after["lines"] == [before]
    # 100.0001 * 0.95 = 95.000095 → 95.0001; times 120
    (quoted,) = ask(erp, "quote", wanted).items
    assert (quoted["listPrice"], quoted["discount"]) == ("100.0001", "0.9500")
    assert (quoted["price"], quoted["amount"]) == ("95.0001", "11400.01")


# ---------------------------------------------------------------------------------------------------- purchases
def test_purchases_are_added_up_exactly(erp: DemoErp) -> None:
    customer = new_customer(erp)
    amounts = ["9007199254740993.01", "0.10", "0.20", "0.02"]
    for month, amount in enumerate(amounts, 1):
        set_amount(erp, ordered(erp, customer, f"2026-0{month}-15", ("CP00001", "1.001")), amount)
    exact = sum(map(Decimal, amounts), Decimal(0))
    assert Decimal(sum(map(float, amounts))) != exact  # a float sum would be wrong here
    (row,) = ask(erp, "customer_purchases", {"customer": customer}).items
    assert row["amount"] == "9007199254740993.33"
    assert (row["quantity"], row["orders"], row["lastOrderDate"]) == ("4.004", 4, "2026-04-15")
    (row,) = ask(erp, "customer_purchases", {"customer": customer, "orderDate": {"from": "2026-02-01"}}).items
    assert (row["amount"], row["orders"]) == ("0.32", 3)


def test_amounts_that_are_alike_as_floats_are_sorted_apart(erp: DemoErp) -> None:
    low, high = new_customer(erp), new_customer(erp)
    set_amount(erp, ordered(erp, low, "2026-02-02", ("CP00003", "1")), "9007199254740992.01")
    set_amount(erp, ordered(erp, high, "2026-02-02", ("CP00003", "1")), "9007199254740992.02")
    asked = {"customer": [low, high], "groupBy": "customer"}
    for direction, wanted in (("DESC", [high, low]), ("ASC", [low, high])):
        found = ask(erp, "customer_purchases", asked, sort=[{"field": "amount", "direction": direction}])
        assert [row["customer"] for row in found.items] == wanted


def test_purchases_count_orders_not_lines_and_leave_cancelled_ones_out(erp: DemoErp) -> None:
    customer = new_customer(erp)
    ordered(erp, customer, "2026-06-01", ("CP00001", "1"), ("CP00002", "2"))
    ordered(erp, customer, "2026-06-02", ("CP00002", "3"))
    gone = ordered(erp, customer, "2026-06-03", ("CP00002", "50"))
    erp.run("u-lin", "erp.sales_order.cancel", record=gone)

    def by(grouping: str, **more: Any) -> list[tuple[str, int]]:
        asked = {"customer": customer, "groupBy": grouping, **more}
        found = ask(erp, "customer_purchases", asked, sort=[{"field": "quantity"}])
        return [(row["quantity"], row["orders"]) for row in found.items]

    assert by("customer") == [("6.000", 2)]
    assert by("customer_product") == [("1.000", 1), ("5.000", 2)]
    assert by("product", status="cancelled") == [("50.000", 1)]
    assert by("customer", product="CP00001") == [("1.000", 1)]


@pytest.mark.parametrize("tenant", [FIRST, SECOND], ids=["B001", "B002"])
def test_all_purchases_equal_the_sums_of_the_tables(
    erp: DemoErp, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customer_purchases, "BATCH", 7)  # many batches
    brands = tenant.brands_id
    valid = {row.sId: row for row in rows_of(erp, "sal_order", brands) if not row.bInvalid}
    expected: dict[tuple[str, str], list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for line in rows_of(erp, "sal_orderline", brands):
        if line.sParentId in valid:
            sums = expected[valid[line.sParentId].sCustomerId, line.sProductId]
            sums[0] += line.dQuantity
            sums[1] += line.dAmount
    user = "u-sun" if tenant is FIRST else "u-gao"
    found: dict[tuple[str, str], list[Decimal]] = {}
    number, more, total = 1, True, None
    while more:
        page = ask(erp, "customer_purchases", user=user, tenant=tenant, page={"number": number, "size": 13})
        for row in page.items:
            key = row["customer"], row["product"]
            assert key not in found
            found[key] = [Decimal(row["quantity"]), Decimal(row["amount"])]
        number, more, total = number + 1, page.page.has_more, page.page.total
    assert found == dict(expected)
    assert total == len(expected) > 20


# ---------------------------------------------------------------------------------------------------- quotes
def test_a_quote_costs_what_an_order_would_and_reserves_nothing(erp: DemoErp) -> None:
    lines = [
        {"product": "CP00002", "quantity": 40},
        {"product": "CP00001", "quantity": "60"},
        {"product": "CP00001", "quantity": "40.5"},
    ]
    with erp.reading() as connection:
        before = oracle.counts(connection)
    level = erp.level("CP00001")
    found = ask(erp, "quote", {"customer": "KH0003", "lines": lines}, locale="zh")
    with erp.reading() as connection:
        assert oracle.counts(connection) == before
    assert erp.level("CP00001") == level
    assert [(row["productNo"], row["quantity"]) for row in found.items] == [
        ("CP00001", "100.500"),
        ("CP00002", "40.000"),
    ]
    prepared = erp.prepare("u-lin", ORDER, payload={"customer": "KH0003", "lines": lines})
    assert found.items[0]["quoteTotal"] == prepared.preview.totals[0].new == "2262.29"
    assert (found.items[0]["nextQuantity"], found.items[0]["nextDiscount"]) == ("500.000", "0.9000")
    (warning,) = found.warnings
    assert warning.code == "not_reserved"
    assert "未预留库存" in warning.message
    page = ask(erp, "quote", {"customer": "KH0003", "lines": lines}, page={"size": 1})
    assert (len(page.items), page.page.has_more, page.items[0]["quoteTotal"]) == (1, True, "2262.29")


def test_quotes_side_by_side_have_their_own_discounts(erp: DemoErp) -> None:
    asked = {
        "customer": "KH0003",
        "product": ["CP00001", "CP00002"],
        "quantity": [1000, "100", "99.999", "100.0"],
    }
    found = ask(erp, "quote_comparison", asked)
    assert [(row["productNo"], row["quantity"], row["discount"]) for row in found.items] == [
        (product, quantity, factor)
        for product in ("CP00001", "CP00002")
        for quantity, factor in (("99.999", "1.0000"), ("100.000", "0.9500"), ("1000.000", "0.8500"))
    ]
    amounts = {row["id"]: Decimal(row["amount"]) for row in found.items}
    cheapest = ask(erp, "quote_comparison", asked, sort=[{"field": "amount"}], page={"size": 1}).items[0]
    assert Decimal(cheapest["amount"]) == min(amounts.values())
    assert "not_reserved" in {w.code for w in found.warnings}


def test_the_dearest_product_in_the_largest_quantity_is_still_exact(erp: DemoErp) -> None:
    set_price(erp, "CP00005", "99999999999999.9999")
    lines = [{"product": "CP00005", "quantity": "999999999.999"}]
    (row,) = ask(erp, "quote", {"customer": "KH0003", "lines": lines}).items
    # 99999999999999.9999 * 0.85 → 84999999999999.9999, times 999999999.999
    assert (row["price"], row["amount"]) == ("84999999999999.9999", "84999999999914999900000.00")


def test_what_is_not_on_sale_is_priced_but_said_so(erp: DemoErp) -> None:
    listed = {row.sProductId for row in rows_of(erp, "pro_listing") if row.bListed and not row.bInvalid}
    off = next(row for row in rows_of(erp, "eleproduct", bInvalid=0) if row.sId not in listed)
    found = ask(erp, "quote", {"customer": "KH0003", "lines": [{"product": off.sId, "quantity": 1}]})
    assert found.items[0]["onSale"] is False
    assert [w.code for w in found.warnings] == ["not_reserved", "not_on_sale"]
    assert off.sProductNo in found.warnings[1].message


# ---------------------------------------------------------------------------------------------------- limits
def test_a_page_is_clamped_and_a_wrong_one_refused(erp: DemoErp) -> None:
    found = ask(erp, "customer_purchases", page={"size": 5000})
    assert found.page.size == 200
    assert [w.code for w in found.warnings] == ["query_size_clamped"]
    beyond = ask(erp, "orders", page={"number": 999})
    assert (beyond.items, beyond.page.has_more) == ([], False)
    refused(lambda: ask(erp, "orders", page={"number": 0}), E.QUERY_PAGE_INVALID)


@pytest.mark.parametrize("query", NAMES)
def test_only_what_is_sortable_is_sorted_by(erp: DemoErp, query: str) -> None:
    error = refused(
        lambda: ask(erp, query, sort=[{"field": "customerName; DROP TABLE sal_order"}]),
        E.QUERY_SORT_FIELD_NOT_ALLOWED,
    )
    told = next(i for i in erp.adapter.queries(Actor(FIRST, "u-sun", locale="en")) if i.name == query)
    assert all(name in error.hint("en") for name in told.sortable)
    refused(
        lambda: ask(erp, query, sort=[{"field": told.sortable[0], "direction": "UP"}]),
        E.QUERY_DIRECTION_INVALID,
    )


def test_every_sort_works_both_ways_and_ends_with_the_unique_name(erp: DemoErp) -> None:
    for info in erp.adapter.queries(Actor(FIRST, "u-sun", locale="en")):
        for name in info.sortable:
            for direction in ("ASC", "DESC"):
                asked = FILTERS[info.name]
                found = ask(erp, info.name, asked, sort=[{"field": name, "direction": direction}])
                assert found.applied_sort[-1].field == info.sortable[-1]
                values = [row[name] for row in found.items]
                if name not in ("amount", "quantity", "price", "totalAmount"):
                    continue
                numbers = [Decimal(value) for value in values]
                assert numbers == sorted(numbers, reverse=direction == "DESC")


FILTERS: dict[str, dict[str, Any]] = {
    "orders": {},
    "customer_purchases": {"groupBy": "product"},
    "quote": {"customer": "KH0003", "lines": [{"product": p, "quantity": 3} for p in ("CP00001", "CP00002")]},
    "quote_comparison": {"customer": "KH0003", "product": ["CP00001", "CP00002"], "quantity": [1, 600]},
}


def details(erp: DemoErp, query: str, filter: dict[str, Any]) -> tuple[ValidationFailed, dict[str, E]]:  # noqa: A002
    with pytest.raises(ValidationFailed) as caught:
        ask(erp, query, filter)
    return caught.value, {problem.field: problem.code for problem in caught.value.details}


def test_every_bad_field_of_a_filter_is_reported_at_once(erp: DemoErp) -> None:
    _, found = details(
        erp,
        "orders",
        {
            "custmer": "KH0003",
            "sBrandsId": "B002",
            "customer": [],
            "product": 7,
            "status": ["open"],
            "orderDate": {"from": "30.11.2026", "until": "2026-01-01"},
        },
    )
    assert found == {
        "filter.custmer": E.FIELD_UNKNOWN,
        "filter.sBrandsId": E.FIELD_UNKNOWN,
        "filter.customer": E.FIELD_INVALID,
        "filter.product[0]": E.FIELD_INVALID,
        "filter.status[0]": E.FIELD_INVALID,
        "filter.orderDate.from": E.FIELD_INVALID,
        "filter.orderDate.until": E.FIELD_UNKNOWN,
    }
    _, found = details(erp, "orders", {"orderDate": {"from": "2026-02-01", "to": "2026-01-01"}})
    assert found == {"filter.orderDate": E.FIELD_INVALID}
    lines = [{"product": "CP00001", "quantity": q} for q in (0, "-1", "1.0001", "1,000", 10**10, True)]
    _, found = details(erp, "quote", {"lines": [*lines, {"quantity": 1, "price": 1}]})
    assert found == {
        "filter.customer": E.FIELD_REQUIRED,
        **{f"filter.lines[{n}].quantity": E.FIELD_INVALID for n in range(6)},
        "filter.lines[6].product": E.FIELD_REQUIRED,
        "filter.lines[6].price": E.FIELD_UNKNOWN,
    }


def test_a_name_that_fits_several_lists_them(erp: DemoErp) -> None:
    for query, more in (("orders", {}), ("quote", {"lines": [{"product": "没有这个", "quantity": 1}]})):
        error, found = details(erp, query, {"customer": AMBIGUOUS_CUSTOMER, **more})
        assert found["filter.customer"] is E.REFERENCE_AMBIGUOUS
        candidates = [c for c in error.candidates if c["field"] == "filter.customer"]
        assert {c["number"] for c in candidates} == {"KH0001", "KH0002"}
        chosen = candidates[0]["id"]
        assert all(i["customer"] == chosen for i in ask(erp, "orders", {"customer": chosen}).items)
        assert found.get("filter.lines[0].product") is (E.REFERENCE_NOT_FOUND if more else None)


@pytest.mark.parametrize(
    "name",
    [
        "'; DROP TABLE sal_order; --",
        '" OR 1=1 --',
        "%",
        "_",
        "\\",
        "🧧👩‍👩‍👧‍👦",
        "Ｋ",
        "{{7*7}}",
        "</script>",
    ],
)
def test_odd_names_are_just_not_found(erp: DemoErp, name: str) -> None:
    before = len(rows_of(erp, "sal_order"))
    for query in ("orders", "customer_purchases"):
        _, found = details(erp, query, {"customer": name, "product": name})
        assert found == {
            "filter.customer": E.REFERENCE_NOT_FOUND,
            "filter.product": E.REFERENCE_NOT_FOUND,
        }
    assert len(rows_of(erp, "sal_order")) == before


@pytest.mark.parametrize("raw", ["\0", "a\x07", "\ud800", None, {}, 1.5, True, "x" * 300, ["KH0003"] * 51])
def test_what_no_name_can_be_is_a_bad_field(erp: DemoErp, raw: Any) -> None:
    _, found = details(erp, "orders", {"customer": raw})
    assert list(found.values()) == [E.FIELD_INVALID]


# ---------------------------------------------------------------------------------------------------- who may
def test_another_tenant_is_neither_shown_nor_named(erp: DemoErp) -> None:
    there = {row.sId for row in rows_of(erp, "sal_order", "B002")}
    found = ask(erp, "orders", user="u-gao", tenant=SECOND, page={"size": 200})
    assert {item["id"] for item in found.items} == there
    assert found.page.total == len(there) > 0
    mine = rows_of(erp, "elecustomer", sCustomerNo="KH0003")[0]
    asked = QueryRequest(filter={"customer": mine.sId})
    for query in ("orders", "customer_purchases"):
        with pytest.raises(ValidationFailed) as caught:
            erp.adapter.run_query(Actor(SECOND, "u-gao", locale="en"), query, asked)
        assert caught.value.code is E.REFERENCE_NOT_FOUND


def test_who_may_not_look_at_the_forms_may_not_ask(erp: DemoErp) -> None:
    with erp.engine.begin() as connection:
        grant = {"sBrandsId": "B001", "sSubsidiaryId": "S01", "sUserId": "u-zhou", "sOpType": "read"}
        for form in ("product", "customer", "product_listing"):
            connection.execute(insert(system.grant).values(sId=f"g-{form}", sFormId=form, **grant))
    told = [info.name for info in erp.adapter.queries(Actor(FIRST, "u-zhou"))]
    assert told == ["quote", "quote_comparison"]
    refused(lambda: ask(erp, "orders", user="u-zhou"), E.FORBIDDEN)
    assert ask(erp, "quote", FILTERS["quote"], user="u-zhou").page.total == 2
    assert erp.adapter.queries(Actor(FIRST, "nobody")) == []
    assert erp.adapter.queries(Actor(SECOND, "u-zhou")) == []
    refused(lambda: ask(erp, "quote", FILTERS["quote"], user="nobody"), E.FORBIDDEN)
    refused(lambda: ask(erp, "or'ders"), E.FORM_NOT_FOUND)


def test_queries_are_told_in_the_askers_language(erp: DemoErp) -> None:
    zh, en = (erp.adapter.queries(Actor(FIRST, "u-sun", locale=locale)) for locale in ("zh", "en"))
    assert [i.name for i in zh] == [i.name for i in en] == NAMES
    assert "下单时的价格" in zh[0].description
    assert "at the time of the order" in en[0].description
    assert "no stock is reserved" in en[2].description
    for info, word_ in ((zh[0], "客户"), (en[0], "Customer")):
        assert info.filter_schema["properties"]["customer"]["title"] == word_
        assert info.row_schema["properties"]["customerName"]["title"] == word_
    for info in (*zh, *en):
        assert "x-label" not in str(info.filter_schema) + str(info.row_schema)
        assert info.filter_schema["additionalProperties"] is False
    assert en[0].filter_schema["properties"]["status"]["items"]["enum"] == ["draft", "examined", "cancelled"]
    day = en[0].filter_schema["$defs"]["DayRange"]["properties"]["from"]
    assert (day["type"], day["format"]) == ("string", "date")
