"""Keys that somebody may put into a payload: system columns of queue and ERP, and whatever might end up in SQL."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from staging.contracts.operation import OperationView
from staging.storage.tables import metadata
from workers.erp.demo.schema import demo_metadata
from workers.erp.tables import erp_metadata

# How something fit for a name breaks out of quotes, formats, parameters, templates and paths; and what only looks
# like a field's name.
ODD = (
    "'", '"', "`", "''", '"" --', "name'", 'name"', "name`", "`name`", '"name"', "[name]", "name--", "name;--",
    "name/*", "*", "a b", "name = 'x' OR 1=1 --", "name) VALUES (1); DROP TABLE ai_op_queue; --", "%s", "%(name)s",
    "%", "%%", ":x", ":name", "?", "$1", "{0}", "{name}", "{{7*7}}", "${name}", "$ne", "$where", "__proto__",
    "constructor", "__class__", "a.b", "name.name", "name[0]", "parts[0].name", "/name", "../name", "name\\", "\\x00",
    "name ", " name", "NAME", "Name", "n\u0430me", "\uff4e\uff41\uff4d\uff45", "nam\u00e9", "name\u200b", "\u202ename",
    "name\u00a0", "名称", "😀", "name😀", "x" * 200, "0", "-1", "null", "true", "",
)  # fmt: skip
# No JSON of ours holds these (RELIABILITY B23).
IMPOSSIBLE = ("\0", "name\0", "\ud800")
IDENTITY = (
    "id", "key", "tenant", "tenantId", "brandsId", "subsidiaryId", "user", "userId", "maker", "owner", "role", "roles",
    "kind", "actor", "status", "code", "state", "approvedBy", "confirmedBy", "seal", "hash", "lease", "leaseToken",
    "attempts", "version", "createdAt", "modifiedAt", "autoExecute", "requiresApproval", "commandType",
)  # fmt: skip


def columns() -> Iterator[str]:
    """Every column of every table, by its name in the database."""
    for schema in (metadata, erp_metadata, demo_metadata):
        for table in schema.tables.values():
            yield from (column.name for column in table.columns)


def system_keys() -> list[str]:
    """Columns, the view's fields and what else identity may be called."""
    view = [to_camel(name) for name in OperationView.model_fields]
    return sorted({*columns(), *view, *IDENTITY})
