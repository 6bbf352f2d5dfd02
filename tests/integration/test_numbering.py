"""Document numbers have no gaps and no duplicates, per tenant and period, on three engines and whoever else numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import DBAPIError

from staging.contracts.form import NumberRule
from staging.domain.identity import Tenant
from staging.storage.dberrors import classify_db_error
from staging.storage.engine import make_engine
from tests.support.small_erp import CATALOGUE, OTHER_TENANT, TENANT, SmallErp, quote
from workers.erp.sql.catalogue_tables import tables_of
from workers.erp.sql.numbering import allocate, series_of
from workers.erp.tables import op_number

RULE = NumberRule(field="billNo", rule="BJD{yyyyMM}{seq:3}")
NOVEMBER = date(2026, 11, 30)
MASTER = tables_of(CATALOGUE).master("quote")


@pytest.fixture
def erp(engine: Engine) -> SmallErp:
    return SmallErp(engine)


def number(connection: Any, rule: str = RULE.rule, tenant: Tenant = TENANT, today: date = NOVEMBER) -> str:
    return allocate(connection, "ai_op_number", MASTER, NumberRule(field="billNo", rule=rule), tenant, today)


def one(erp: SmallErp, rule: str = RULE.rule, tenant: Tenant = TENANT, today: date = NOVEMBER) -> str:
    with erp.engine.begin() as connection:
        return number(connection, rule, tenant, today)


def documents(erp: SmallErp, *numbers: str, tenant: Tenant = TENANT) -> None:
    erp.insert(
        quote,
        *({"sId": f"{tenant.brands_id}{n}", "sBillNo": n, "sTitle": "旧"} for n in numbers),
        tenant=tenant,
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("BJD{yyyyMM}{seq:3}", "BJD202611007"),
        ("{yy}-{seq:4}/A", "26-0007/A"),
        ("X{yyyyMMdd}{seq:2}", "X2026113007"),
        ("{yyMM}{seq:1}", "26117"),
        ("KH{seq:4}", "KH0007"),
        ("{yyyy}年{seq:3}号", "2026年007号"),
    ],
)
def test_a_rule_is_filled_in_and_read_back(rule: str, expected: str) -> None:
    series = series_of(NumberRule(field="billNo", rule=rule), NOVEMBER)
    assert series.number(7) == expected
    assert series.sequence(expected) == 7
    assert series.sequence("x" + expected) is None
    assert series.sequence(expected + "x") is None


def test_numbers_of_one_digit_too_few_or_of_other_digits_are_not_of_the_series() -> None:
    series = series_of(RULE, NOVEMBER)
    assert series.sequence("BJD20261112") is None
    assert series.sequence("BJD202611٠٠٧") is None
    assert series.sequence("BJD2026110007") == 7
    assert series.number(1000) == "BJD2026111000"


def test_each_tenant_and_each_period_count_for_themselves(erp: SmallErp) -> None:
    assert [one(erp), one(erp)] == ["BJD202611001", "BJD202611002"]
    assert one(erp, tenant=OTHER_TENANT) == "BJD202611001"
    assert one(erp, today=date(2026, 12, 1)) == "BJD202612001"
    assert one(erp) == "BJD202611003"


def test_a_roll_back_returns_the_number(erp: SmallErp) -> None:
    for _ in range(2):  # the second time with the counter row in place
        with erp.engine.connect() as connection:
            taken = number(connection)
            connection.rollback()
        assert one(erp) == taken


def test_numbering_goes_on_behind_the_documents_an_adopted_erp_has(erp: SmallErp) -> None:
    documents(
        erp, "BJD202611006", "BJD202611007", "BJD202610099", "BJD202611-08", "bjd202611500", "BJD20261199"
    )
    documents(erp, "BJD202611044", tenant=OTHER_TENANT)
    assert [one(erp), one(erp)] == ["BJD202611008", "BJD202611009"]
    assert one(erp, tenant=OTHER_TENANT) == "BJD202611045"
    with erp.engine.connect() as connection:
        assert connection.execute(select(op_number.c.iLast)).scalars().all().count(9) == 1


def test_a_longer_number_of_another_pattern_does_not_make_ours_jump(erp: SmallErp) -> None:
    documents(erp, "BJD2026005", "BJD202611007")  # a rule by year, and an older one by month
    assert one(erp, "BJD{yyyy}{seq:3}") == "BJD2026006"


def test_a_sequence_that_outgrew_its_width_goes_on_wider(erp: SmallErp) -> None:
    documents(erp, "BJD202611998", "BJD202611999", "BJD2026111000", "BJD2026111001")
    assert one(erp) == "BJD2026111002"


def test_like_wildcards_in_a_rule_match_only_themselves(erp: SmallErp) -> None:
    documents(erp, "A_B%005", "AxBy077")
    assert one(erp, "A_B%{seq:3}") == "A_B%006"


def test_a_number_the_erp_gave_out_itself_meanwhile_is_passed_over(erp: SmallErp) -> None:
    assert one(erp) == "BJD202611001"
    documents(erp, "BJD202611001", "BJD202611002", "BJD202611003")
    assert [one(erp), one(erp)] == ["BJD202611004", "BJD202611005"]


@pytest.fixture
def patient(database_url: str) -> Iterator[Engine]:
    """An engine whose waits outlast a queue of twelve writers."""
    engine = make_engine(database_url, pool_size=12, lock_timeout_s=20, statement_timeout_s=30)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("existing", [0, 7])
def test_twelve_writers_at_once_leave_no_gap_and_no_duplicate(
    erp: SmallErp, patient: Engine, existing: int
) -> None:
    """Every fourth transaction rolls back; the first allocation of the period (no counter row) is part of the race."""
    documents(erp, *(f"BJD202611{n:03d}" for n in range(1, existing + 1)))
    start = threading.Barrier(12)

    def writer(worker: int) -> list[str]:
        start.wait(10)
        committed = []
        for turn in range(6):
            while True:  # a deadlock among those that create the counter: the executor runs the whole again
                try:
                    with patient.connect() as connection:
                        mine = number(connection)
                        row = {"sId": f"w{worker}-{turn}", "sBillNo": mine, "sTitle": "x"}
                        connection.execute(
                            quote.insert(),
                            {**row, "sBrandsId": TENANT.brands_id, "sSubsidiaryId": TENANT.subsidiary_id},
                        )
                        if (worker + turn) % 4 == 0:
                            connection.rollback()
                        else:
                            connection.commit()
                            committed.append(mine)
                    break
                except DBAPIError as error:
                    if not classify_db_error(error).is_transient:
                        raise
        return committed

    with ThreadPoolExecutor(max_workers=12) as pool:
        got = sorted(n for numbers in pool.map(writer, range(12)) for n in numbers)
    assert got == [f"BJD202611{n:03d}" for n in range(existing + 1, existing + 1 + 54)]
