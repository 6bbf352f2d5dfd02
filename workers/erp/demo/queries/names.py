"""What a filter names, as keys; and keys as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from workers.erp.query import QueryContext
from workers.erp.sql.change import Node
from workers.erp.sql.problems import Problems
from workers.erp.sql.references import References, Wanted
from workers.erp.sql.texts import Texts

ORDER = "sales_order"


@dataclass(frozen=True, slots=True)
class Asked:
    """A customer or product as a filter names it, and where: ``filter``, ``filter.lines[0]``."""

    field: Literal["customer", "product"]
    raw: str
    path: str = "filter"


def keys_of(context: QueryContext, asked: Sequence[Asked], *, valid_only: bool) -> list[str]:
    """The key of each, in order, by the rules of a sales order's own references.

    ``valid_only``: voided records are not found. Raises ``ValidationFailed`` with every name that is unknown or fits
    several records, and the candidates.
    """
    form, master = context.tables.form(ORDER), context.tables.master(ORDER)
    problems = Problems()
    wanted = []
    for one in asked:
        table, level = (
            (master, form) if one.field == "customer" else (master.children["lines"], form.children[0])
        )
        field = table.fields[one.field]
        if field.reference and not valid_only:
            loose = field.reference.model_copy(update={"valid_only": False})
            field = field.model_copy(update={"reference": loose})
        wanted.append(Wanted(Node(table, level, "add", one.path, new={one.field: one.raw}), field))
    References(context.connection, context.tables, context.actor.tenant, problems, ids_only=False).resolve(
        wanted
    )
    problems.raise_any()
    return [one.raw for one in wanted]


def texts_of(context: QueryContext, customers: Iterable[str] = (), products: Iterable[str] = ()) -> Texts:
    """Loaded names of these records; ask with ``record(form, key)``."""
    texts = Texts(context.connection, context.tables, context.actor.tenant, context.actor.locale)
    for form, keys in (("customer", customers), ("product", products)):
        for key in keys:
            texts.want_record(form, key)
    texts.load()
    return texts
