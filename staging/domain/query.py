"""The rules of the Query Framework that need no database: page limits, sortable fields, the tie-breaking id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from staging.contracts.error import ErrorCode as E
from staging.contracts.query import MAX_SIZE, AppliedSort, PageInfo, Paging, QueryWarning
from staging.domain.errors import Refused

_MAX_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a store has to do: sort by ``sort`` (complete), skip ``offset`` rows, fetch ``size`` + 1 to know if
    more follow."""

    sort: tuple[AppliedSort, ...]
    number: int
    size: int
    warnings: tuple[QueryWarning, ...]

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size

    def page(self, fetched: int, total: int | None) -> PageInfo:
        """``fetched``: rows got for a limit of ``size + 1``."""
        return PageInfo(number=self.number, size=self.size, total=total, has_more=fetched > self.size)


def plan(
    request: Paging,
    sortable: Collection[str],
    unique: str,
    default: tuple[AppliedSort, ...],
    locale: str,
) -> Plan:
    """Check and complete a request. ``unique``: public name of the id, appended last; ``default``: sort when
    none is asked.

    Raises query_page_invalid, query_sort_field_not_allowed (hint lists the allowed ones), query_direction_invalid.
    """
    page = request.page
    if not 1 <= page.number <= _MAX_NUMBER or page.size < 1:
        raise Refused(E.QUERY_PAGE_INVALID)
    warnings = []
    size = min(page.size, MAX_SIZE)
    if size < page.size:
        zh, en = f"每页最多 {MAX_SIZE} 条", f"at most {MAX_SIZE} rows a page"
        warnings.append(QueryWarning(code="query_size_clamped", message=zh if locale == "zh" else en))
    sort: list[AppliedSort] = []
    for key in request.sort:
        if key.field != unique and key.field not in sortable:
            allowed = ", ".join(sorted({*sortable, unique}))
            raise Refused(E.QUERY_SORT_FIELD_NOT_ALLOWED, {"field": key.field, "allowed": allowed})
        direction = key.direction.upper()
        if direction not in ("ASC", "DESC"):
            raise Refused(E.QUERY_DIRECTION_INVALID, {"direction": key.direction})
        if key.field not in {s.field for s in sort}:
            sort.append(AppliedSort(field=key.field, direction="ASC" if direction == "ASC" else "DESC"))
    sort = sort or list(default)
    if unique not in {s.field for s in sort}:
        sort.append(AppliedSort(field=unique, direction=sort[-1].direction if sort else "ASC"))
    return Plan(tuple(sort), page.number, size, tuple(warnings))
