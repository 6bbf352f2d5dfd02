"""Commands that come together: one ``execute_all`` for those that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from staging.contracts.error import ErrorCode as E
from staging.contracts.preparation import PrepareItem
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor
from staging.domain.ports import Execution
from tests.support.shop_erp import BOSS, CLERK, Shop, quote
from tests.support.shop_sets import FORGOTTEN, RenameAll


@pytest.fixture(autouse=True)
def sizes() -> Iterator[list[int]]:
    RenameAll.sizes.clear()
    yield RenameAll.sizes
    RenameAll.sizes.clear()


def _rename(
    shop: Shop, record: str, title: str, actor: Actor = BOSS, command: str = "renameAll"
) -> Execution:
    item = PrepareItem(command_type=f"crm.quote.{command}", record=record, payload={"title": title})
    return shop.execution(shop.adapter.prepare(BOSS, item), actor)


@pytest.fixture
def records(shop: Shop) -> list[str]:
    for n in range(4):
        shop.add(quote, sId=f"n{n}", sBillNo=f"N{n}", sTitle="旧", sCustomerId="c1", dTaxRate=Decimal("0.1"))
    return [f"n{n}" for n in range(4)]


def _titles(shop: Shop, records: list[str]) -> list[str]:
    return [shop.row(quote, key)["sTitle"] for key in records]


def test_they_are_planned_each_and_executed_together_outcomes_in_order(
    shop: Shop, records: list[str], sizes: list[int]
) -> None:
    outcomes = shop.execute_all(*[_rename(shop, key, f"新{key}") for key in reversed(records)])
    assert [o.result_bill_id for o in outcomes] == ["n3", "n2", "n1", "n0"]
    assert _titles(shop, records) == ["新n0", "新n1", "新n2", "新n3"]
    assert sizes == [4]


def test_other_operations_between_them_stay_between_them(
    shop: Shop, records: list[str], sizes: list[int]
) -> None:
    one, two, three, four = records
    shop.execute_all(
        _rename(shop, one, "a"),
        _rename(shop, two, "b"),
        _rename(shop, three, "c", command="rename"),
        _rename(shop, four, "d"),
    )
    assert _titles(shop, records) == ["a", "b", "c", "d"]
    assert sizes == [2, 1]


def test_one_that_comes_alone_goes_through_execute(shop: Shop, records: list[str], sizes: list[int]) -> None:
    assert shop.execute(_rename(shop, "n0", "x")).result_bill_id == "n0"
    assert sizes == [1]


def test_two_on_one_record_are_never_in_one_set_and_the_second_sees_the_first(
    shop: Shop, records: list[str], sizes: list[int]
) -> None:
    twice = [_rename(shop, "n0", "first"), _rename(shop, "n1", "other"), _rename(shop, "n0", "second")]
    with pytest.raises(OpstageError) as caught:
        shop.execute_all(*twice)
    assert caught.value.code is E.VERSION_CONFLICT
    assert caught.value.conflict[0]["now"] == "first"
    assert _titles(shop, records) == ["旧"] * 4
    assert sizes == [2]


@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_without_permission_refuses_the_set(shop: Shop, records: list[str], place: int) -> None:
    actors = [CLERK if n == place else BOSS for n in range(4)]
    some = [_rename(shop, key, "x", actor) for key, actor in zip(records, actors, strict=True)]
    with pytest.raises(OpstageError) as caught:
        shop.execute_all(*some)
    assert caught.value.code is E.FORBIDDEN
    assert _titles(shop, records) == ["旧"] * 4


def test_an_outcome_too_few_is_an_error_and_nothing_is_kept(
    shop: Shop, records: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    some = [_rename(shop, "n0", "a"), _rename(shop, "n1", FORGOTTEN), _rename(shop, "n2", "c")]
    with pytest.raises(LookupError, match="2 outcomes for 3"):
        shop.execute_all(*some)
    assert "execute_all gave 2 outcomes for 3" in caplog.text
    assert _titles(shop, records) == ["旧"] * 4


def test_of_a_set_each_has_what_it_changes_as_it_was_seen(shop: Shop, records: list[str]) -> None:
    some = [_rename(shop, key, "x") for key in records]
    shop.change(quote, "n2", sTitle="meanwhile")
    with pytest.raises(OpstageError) as caught:
        shop.execute_all(*some)
    assert caught.value.code is E.VERSION_CONFLICT
    assert _titles(shop, records) == ["旧", "旧", "meanwhile", "旧"]
