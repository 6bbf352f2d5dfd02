"""Two who saw the same: one gets it, the other learns what changed. And whatever is sent, the answer is one of ours."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from staging.contracts.error import ErrorCode as E
from staging.contracts.preparation import PrepareItem
from staging.domain.errors import OpstageError
from staging.domain.ports import Execution, Prepared
from tests.support.shop_erp import BOSS, Shop, quote


def _at_once(shop: Shop, executions: list[Execution]) -> list[Any]:
    """What became of each: the outcome or the error."""
    gate = threading.Barrier(len(executions))
    results: list[Any] = [None] * len(executions)

    def run(n: int) -> None:
        gate.wait(timeout=10)
        try:
            results[n] = shop.execute(executions[n])
        except OpstageError as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(executions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_updates_that_saw_the_same_one_is_executed(shop: Shop) -> None:
    prepared = [shop.prepare("quote", "update", record="q1", payload={"title": f"T{n}"}) for n in range(4)]
    results = _at_once(shop, [shop.execution(p) for p in prepared])
    errors = [r for r in results if isinstance(r, OpstageError)]
    assert [e.code for e in errors] == [E.VERSION_CONFLICT] * 3
    winner = next(n for n, r in enumerate(results) if not isinstance(r, OpstageError))
    assert shop.row(quote, "q1")["sTitle"] == f"T{winner}"
    assert {entry["now"] for e in errors for entry in e.conflict} == {f"T{winner}"}


def test_of_an_update_and_an_examination_both_or_one_is_executed_in_order(shop: Shop) -> None:
    update = shop.prepare("quote", "update", record="q1", payload={"title": "T"})
    examine = shop.prepare("quote", "examine", record="q1")
    results = _at_once(shop, [shop.execution(update), shop.execution(examine)])
    row = shop.row(quote, "q1")
    assert row["bCheck"]
    if isinstance(results[0], OpstageError):
        assert results[0].code == E.STATE_CONFLICT
        assert row["sTitle"] == "画册"
    else:
        assert row["sTitle"] == "T"


def test_what_is_left_of_a_source_line_is_taken_once(shop: Shop) -> None:
    ref = {"formId": "request", "record": "rq1", "lines": [{"id": "rl1", "quantity": 50}]}
    prepared = [shop.prepare("order", "generate", source_ref=ref) for _ in range(3)]
    results = _at_once(shop, [shop.execution(p) for p in prepared])
    assert sorted(isinstance(r, OpstageError) for r in results) == [False, True, True]


def test_of_twins_by_natural_key_one_is_executed_and_the_others_are_told_of_it(shop: Shop) -> None:
    for round_ in range(5):
        twin = {"customer": "c1", "title": f"年历{round_}", "parts": [{"name": "封面", "quantity": 1}]}
        prepared = [shop.prepare("quote", "create", payload=twin) for _ in range(4)]
        results = _at_once(shop, [shop.execution(p) for p in prepared])
        errors = [r for r in results if isinstance(r, OpstageError)]
        assert [e.code for e in errors] == [E.POSSIBLE_DUPLICATE] * 3
        (winner,) = (r for r in results if not isinstance(r, OpstageError))
        assert {c["id"] for e in errors for c in e.candidates} == {winner.result_bill_id}


def test_twins_that_a_person_wants_do_not_wait_for_each_other_in_vain(shop: Shop) -> None:
    twin = {"customer": "c1", "title": "日历", "parts": [{"name": "封面", "quantity": 1}]}
    prepared = [shop.prepare("quote", "create", payload=twin) for _ in range(3)]
    wanted = [shop.execution(p, allow_duplicate=True) for p in prepared]
    results = _at_once(shop, wanted)
    assert not [r for r in results if isinstance(r, OpstageError)]


NAMES = st.one_of(
    st.sampled_from(
        ["customer", "title", "days", "taxRate", "kind", "urgent", "parts", "id", "remove", "memo"]
    ),
    st.sampled_from(
        ["name", "quantity", "price", "tiers", "product", "quoteDate", "sentAt", "level", "billNo"]
    ),
    st.text(max_size=5),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=True),
    st.text(max_size=20),
    st.sampled_from(["c1", "KH0001", "l1", "l2", "t1", "1", "1.5", "2026-11-30", "\ud800", "\0"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(
    op=st.sampled_from(["create", "update", "examine", "delete", "rename"]),
    record=st.sampled_from(["", "q1", "q2", "BJD202611001", "\0", "\ud800"]),
    payload=st.dictionaries(NAMES, VALUES, max_size=6),
)
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_whatever_is_sent_to_prepare_is_prepared_or_refused(
    filled_shop: Shop, op: str, record: str, payload: dict[str, Any]
) -> None:
    item = PrepareItem.model_construct(form_id="quote", op_type=op, record=record, payload=payload)
    answer = _answer(filled_shop, item)
    if isinstance(answer, OpstageError):
        assert answer.message("zh")
        assert answer.message("en")
    else:
        assert filled_shop.adapter.restore_payload(answer) is not None


@given(ref=st.dictionaries(st.sampled_from(["formId", "record", "lines", "x"]), VALUES, max_size=4))
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_whatever_source_is_named_is_prepared_or_refused(filled_shop: Shop, ref: dict[str, Any]) -> None:
    whole = {"formId": "request", "record": "rq1", **ref}
    item = PrepareItem.model_construct(form_id="order", op_type="generate", source_ref=whole)
    answer = _answer(filled_shop, item)
    if isinstance(answer, OpstageError):
        assert answer.message("en")
    else:
        assert Decimal(answer.payload["lines"][0]["quantity"]) > 0


def _answer(shop: Shop, item: PrepareItem) -> Prepared | OpstageError:
    try:
        return shop.adapter.prepare(BOSS, item)
    except OpstageError as error:
        return error
