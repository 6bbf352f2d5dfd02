"""Creates together leave what creates one by one leave: the same rows, numbers and links, on three engines."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import StatementError

from staging.domain.identity import Actor
from staging.domain.ports import Outcome
from tests.support.small_erp import (
    CATALOGUE,
    FORMS,
    NOW,
    TENANT,
    TODAY,
    SmallErp,
    execution,
    part,
    product,
    quote,
    tier,
)
from workers.erp.sql.apply import apply_form_operations
from workers.erp.tables import op_number

_TIERS = [{"quantity": "5000.000", "price": "0.3000"}, {"quantity": "9000.000", "price": "0.2500"}]
_LINE = {"name": "封面", "quantity": "1000.000", "price": "0.3335"}
# Filled columns differ from record to record and from line to line.
PAYLOADS: list[dict[str, Any]] = [
    {"title": "a", "memo": "m", "parts": [{**_LINE, "tiers": _TIERS}, {"name": "内页", "quantity": "2.000"}]},
    {"title": "b", "urgent": True, "parts": [_LINE]},
    {"title": "c"},
    {
        "title": "d",
        "delivery": "2026-12-24",
        "factor": "1.1300",
        "parts": [{"name": "x"}, {**_LINE, "tiers": []}],
    },
    {"title": "e", "days": 7, "parts": [{"quantity": "1.000", "price": "1.0000", "tiers": _TIERS[:1]}]},
]
ACTORS = [Actor(TENANT, "u-lin"), Actor(TENANT, "u-wang")]


def together(
    erp: SmallErp, payloads: Sequence[dict[str, Any]], form: str = "quote", today: date = TODAY
) -> list[Outcome]:
    done = [execution(form, "create", ACTORS[n % 2], payload=p) for n, p in enumerate(payloads)]
    with erp.engine.begin() as connection:
        return apply_form_operations(
            connection, CATALOGUE, FORMS[form], [(e, e) for e in done], now_utc=NOW, today=today
        )


def one_by_one(erp: SmallErp, payloads: Sequence[dict[str, Any]]) -> list[Outcome]:
    return [erp.run("quote", "create", payload=p, actor=ACTORS[n % 2]) for n, p in enumerate(payloads)]


def written(erp: SmallErp) -> list[Any]:
    """Every record with its lines and those below, without keys."""

    def below(table: Any, key: str) -> list[Any]:
        lines = sorted(erp.rows(table, sParentId=key), key=lambda row: row["iOrder"])
        return [(_plain(line), below(tier, line["sId"]) if table is part else []) for line in lines]

    masters = sorted(erp.rows(quote), key=lambda row: row["sBillNo"])
    return [(_plain(master), below(part, master["sId"])) for master in masters]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("sId", "sParentId")}


def counters(erp: SmallErp) -> list[tuple[str, int]]:
    with erp.engine.connect() as connection:
        return [(row[0], row[1]) for row in connection.execute(select(op_number.c.sScope, op_number.c.iLast))]


def documents(erp: SmallErp, *numbers: str) -> None:
    erp.insert(quote, *({"sId": f"k{n}", "sBillNo": n, "sTitle": "旧"} for n in numbers))


def test_the_same_rows_numbers_in_order_makers_and_lines(erp: SmallErp) -> None:
    outcomes = together(erp, PAYLOADS)
    assert [o.result["number"] for o in outcomes] == [f"BJD20261200{n}" for n in range(1, 6)]
    titles = {row["sId"]: row["sTitle"] for row in erp.rows(quote)}
    assert [titles[o.result_bill_id] for o in outcomes] == ["a", "b", "c", "d", "e"]
    assert {row["sTitle"]: row["sMakePerson"] for row in erp.rows(quote)} == {
        "a": "u-lin", "b": "u-wang", "c": "u-lin", "d": "u-wang", "e": "u-lin",
    }  # fmt: skip
    as_set, counted = written(erp), counters(erp)
    erp.empty()
    apart = one_by_one(erp, PAYLOADS)
    assert written(erp) == as_set
    assert counters(erp) == counted
    assert [o.message for o in apart] == [o.message for o in outcomes]


@pytest.mark.parametrize(
    "there",
    [
        ["BJD202612003"],
        ["BJD202612001"],
        ["BJD202612005"],
        ["BJD202612002", "BJD202612004"],
        ["BJD202612999", "BJD2026121000"],
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_numbers_somebody_else_has_taken_are_passed_over_as_one_by_one(
    erp: SmallErp, there: list[str], begun: bool
) -> None:
    def prepare() -> None:
        erp.empty()
        if begun:  # the counter is there, at nought
            erp.run("quote", "create", payload={"title": "first"})
            with erp.engine.begin() as connection:
                connection.execute(op_number.update().values(iLast=0))
                connection.execute(quote.delete())
        documents(erp, *there)

    prepare()
    one_by_one(erp, PAYLOADS)
    apart, counted = written(erp), counters(erp)
    prepare()
    together(erp, PAYLOADS)
    assert written(erp) == apart
    assert counters(erp) == counted


def test_sets_and_singles_at_once_leave_no_gap_and_no_number_twice(
    erp: SmallErp, threads: ThreadPoolExecutor
) -> None:
    list(threads.map(lambda n: together(erp, PAYLOADS[: n % 5 + 1]), range(10)))
    numbers = sorted(row["sBillNo"] for row in erp.rows(quote))
    assert numbers == [f"BJD202612{n:03d}" for n in range(1, 31)]


def test_a_form_without_number_or_lines_goes_together_as_well(erp: SmallErp) -> None:
    outcomes = together(erp, [{"name": "铜版纸"}, {"name": "胶版纸"}], "product")
    assert sorted(row["sName"] for row in erp.rows(product)) == ["胶版纸", "铜版纸"]
    assert [o.message["zh"] for o in outcomes] == ["已创建产品"] * 2


def test_one_that_cannot_be_written_undoes_all_and_returns_the_numbers(erp: SmallErp) -> None:
    before = erp.snapshot()
    too_exact = {"title": "x", "parts": [{"name": "bad", "quantity": "0.0001", "price": "1"}]}
    with pytest.raises(StatementError, match="does not fit"):
        together(erp, [PAYLOADS[0], too_exact, PAYLOADS[1]])
    assert erp.snapshot() == before
    assert together(erp, PAYLOADS)[0].result["number"] == "BJD202612001"


def test_fifty_take_hardly_more_statements_than_one(erp: SmallErp) -> None:
    lines = [{**_LINE, "tiers": _TIERS}, _LINE]
    together(erp, [{"title": "counter row"}])
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(erp.engine, "before_cursor_execute", note)
    together(erp, [{"title": f"t{n}", "parts": lines} for n in range(50)])
    event.remove(erp.engine, "before_cursor_execute", note)
    # counter, numbers taken?, masters, lines, lines below
    assert len([s for s in seen if not s.startswith(("PRAGMA", "BEGIN"))]) == 5, seen
    assert len(erp.rows(tier)) == 100
