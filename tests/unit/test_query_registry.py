"""Registered queries: a wrong one is named at start; rows held in memory are sorted as SQL would, empty values last."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue, QueryPolicy
from staging.contracts.query import AppliedSort, QueryRequest
from staging.domain.errors import Refused
from staging.domain.query import Plan, plan
from workers.erp.checks.cross import cross_check
from workers.erp.demo import FORMS
from workers.erp.forms import load_catalogue
from workers.erp.handlers import HandlerInvalid
from workers.erp.query import Found, QueryContext, QueryRegistry, load_query, sorted_page


class Good:
    class Filter(BaseModel):
        word: str = ""

    class Row(BaseModel):
        id: str

    sortable = ("id",)
    unique = "id"
    default_sort = (AppliedSort(field="id", direction="ASC"),)

    def find(self, context: QueryContext, asked: Any, plan: Plan) -> Found:
        return Found([], 0)


class WithoutRow(Good):
    Row = None  # type: ignore[assignment]


class WithoutFind(Good):
    find = None  # type: ignore[assignment]


def policy(name: str, handler: str = "Good", reads: tuple[str, ...] = ("customer",)) -> QueryPolicy:
    text = {"zh": "查询", "en": "Query"}
    return QueryPolicy.model_validate(
        {"name": name, "label": text, "description": text, "reads": reads, "handler": f"{__name__}:{handler}"}
    )


@pytest.mark.parametrize("handler", ["WithoutRow", "WithoutFind", "Missing", "policy"])
def test_a_handler_that_cannot_be_used_is_named(handler: str) -> None:
    with pytest.raises(HandlerInvalid, match=handler):
        load_query(f"{__name__}:{handler}")


def test_a_query_is_found_by_its_name() -> None:
    registry = QueryRegistry([policy("good")])
    assert registry.get("good").policy.name == "good"
    with pytest.raises(Refused) as caught:
        registry.get("x" * 1000)
    assert caught.value.code is ErrorCode.FORM_NOT_FOUND
    assert len(caught.value.message("zh")) < 100


def test_a_catalogue_with_wrong_queries_says_which() -> None:
    catalogue = load_catalogue(FORMS)
    assert len(catalogue.queries) == 4
    wrong = [policy("records"), policy("orders"), policy("good", reads=("customer", "ghost"))]
    changed = Catalogue.model_validate({**dict(catalogue), "queries": [*catalogue.queries, *wrong]})
    assert {problem.where for problem in cross_check(changed)} == {
        "queries[records]",
        "queries[orders]",
        "queries[good].reads",
    }


def test_a_catalogue_without_queries_has_none() -> None:
    without = {name: value for name, value in dict(load_catalogue(FORMS)).items() if name != "queries"}
    assert Catalogue.model_validate(without).queries == []


@dataclass
class Thing:
    id: str
    unit_price: Decimal | None


@pytest.mark.parametrize(
    ("direction", "wanted"), [("ASC", ["c", "a", "b", "d"]), ("DESC", ["b", "a", "c", "d"])]
)
def test_rows_in_memory_are_sorted_exactly_and_empty_ones_come_last(
    direction: str, wanted: list[str]
) -> None:
    base = Decimal(9007199254740992)  # floats cannot tell it from the next
    things = [Thing("d", None), Thing("b", base + 1), Thing("a", base), Thing("c", Decimal("-0.1"))]
    asked = QueryRequest.model_validate({"sort": [{"field": "unitPrice", "direction": direction}]})
    whole = plan(asked, ("unitPrice",), "id", (), "en")
    assert [thing.id for thing in sorted_page(things, whole)] == wanted
    second = QueryRequest.model_validate({**asked.model_dump(), "page": {"number": 2, "size": 1}})
    page = sorted_page(things, plan(second, ("unitPrice",), "id", (), "en"))
    assert [thing.id for thing in page] == wanted[1:3]  # one more, to know whether more follow
