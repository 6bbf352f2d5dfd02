"""What a form's own records do not answer: a query of the ERP's own, in Python.

A handler is registered under its name by the catalogue's ``queries`` entry (``handler``: dotted path of a class,
``package.module:Name``). The adapter has already checked grants, filter, sort and page when a handler is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeVar, cast

from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from sqlalchemy import Connection

from staging.contracts.error import ErrorCode
from staging.contracts.form import QueryPolicy
from staging.contracts.query import AppliedSort, QueryWarning
from staging.domain.errors import Refused
from staging.domain.identity import Actor
from staging.domain.query import Plan
from workers.erp.handlers import made_by
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.told import says

__all__ = [
    "Found",
    "QueryContext",
    "QueryHandler",
    "QueryRegistry",
    "RegisteredQuery",
    "load_query",
    "says",
    "sorted_page",
]
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class QueryContext:
    """What a handler works with. ``connection`` is read-only, on one snapshot; ``today`` the tenant's local date.

    Every statement names the actor's tenant (``tables.master(…).of_tenant(actor.tenant)``).
    """

    connection: Connection
    actor: Actor
    tables: CatalogueTables
    today: date


@dataclass(frozen=True, slots=True)
class Found:
    """``rows``: of the page, and one more if more follow. ``total``: None where counting would cost too much."""

    rows: Sequence[BaseModel]
    total: int | None
    warnings: Sequence[QueryWarning] = ()


class QueryHandler(Protocol):
    """``sortable`` and ``unique`` are public names of ``Row``; ``unique`` tells any two rows apart."""

    Filter: ClassVar[type[BaseModel]]
    """Typed filter, ``extra="forbid"``; amounts are ``sql.coerce.exact_decimal``. Labels by ``says``."""
    Row: ClassVar[type[BaseModel]]
    """Typed row; amounts are Decimals written as exact text. What is None is left out on the wire."""
    sortable: ClassVar[Sequence[str]]
    unique: ClassVar[str]
    default_sort: ClassVar[tuple[AppliedSort, ...]]

    def find(self, context: QueryContext, asked: Any, plan: Plan) -> Found:
        """Rows of ``plan``'s page for ``asked`` (a ``Filter``). Raises ``OpstageError`` for what cannot be answered."""


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query of the catalogue and the handler that answers it."""

    policy: QueryPolicy
    handler: QueryHandler


class QueryRegistry:
    """The handlers of a catalogue's ``queries``, by name. Raises ``HandlerInvalid`` for one it cannot use."""

    def __init__(self, queries: Iterable[QueryPolicy]) -> None:
        self._queries: Mapping[str, RegisteredQuery] = {
            policy.name: RegisteredQuery(policy, load_query(policy.handler)) for policy in queries
        }

    def __iter__(self) -> Iterator[RegisteredQuery]:
        return iter(self._queries.values())

    def get(self, name: str) -> RegisteredQuery:
        """The query, or ``form_not_found``."""
        found = self._queries.get(name)
        if found is None:
            shown = name[:60]
            text = {"zh": f"没有名为“{shown}”的查询", "en": f'There is no query "{shown}"'}
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": shown}, text)
        return found


def load_query(path: str) -> QueryHandler:
    """Import ``package.module:Name`` and make one of it. Raises ``HandlerInvalid``."""
    return cast("QueryHandler", made_by(path, models=("Filter", "Row"), methods=("find",)))


def sorted_page(rows: Iterable[RowT], plan: Plan) -> list[RowT]:
    """``rows`` held in memory, sorted and cut as a ``Found`` wants them; their attributes are snake_case.

    Empty values come last.
    """
    ordered = list(rows)
    for sort in reversed(plan.sort):  # stable: the last key first
        value = attrgetter(to_snake(sort.field))
        filled = sorted(
            (row for row in ordered if value(row) is not None), key=value, reverse=sort.direction == "DESC"
        )
        ordered = filled + [row for row in ordered if value(row) is None]
    return ordered[plan.offset : plan.offset + plan.size + 1]
