"""Who may do what, by the ERP's own grants. What is not granted is forbidden; ``*`` stands for every one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, Select, Table, bindparam, select
from sqlalchemy.schema import Column

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue
from staging.domain.errors import Refused
from staging.domain.identity import Actor, Tenant
from workers.erp.sql.catalogue_tables import KEY

ALL = "*"
APPROVE = "approve"


class Grants:
    """Reads the catalogue's ``permissions`` table; with ``allow_all`` everybody may do everything."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._of = _statement(catalogue) if catalogue.permissions.table else None

    def of(self, connection: Connection, actor: Actor) -> set[tuple[str, str]]:
        """The actor's (form, operation type) pairs, ``*`` as it is stored."""
        if self._of is None:
            return {(ALL, ALL)}
        who = {"b": actor.tenant.brands_id, "s": actor.tenant.subsidiary_id, "u": actor.user_id}
        # Compared again here: a collation of the ERP's may take 'Li' for 'li'.
        return {(form, op) for user, form, op in connection.execute(self._of, who) if user == actor.user_id}

    def require(self, connection: Connection, actor: Actor, form_id: str, op_type: str) -> None:
        """Raise forbidden unless the actor is granted ``op_type`` on the form."""
        if not allows(self.of(connection, actor), form_id, op_type):
            raise Refused(ErrorCode.FORBIDDEN, {"form": form_id, "op": op_type})

    def require_any(self, connection: Connection, actor: Actor, form_id: str) -> None:
        """Raise forbidden unless the actor is granted anything on the form: then they may look at it."""
        if not sees(self.of(connection, actor), form_id):
            raise Refused(ErrorCode.FORBIDDEN, {"form": form_id})


def allows(grants: set[tuple[str, str]], form_id: str, op_type: str) -> bool:
    """True if ``grants`` contain the operation on the form, by name or by ``*``."""
    return any((form, op) in grants for form in (form_id, ALL) for op in (op_type, ALL))


def sees(grants: set[tuple[str, str]], form_id: str) -> bool:
    """True if ``grants`` contain anything on the form, by name or by ``*``."""
    return any(form in (form_id, ALL) for form, _ in grants)


class GrantsOfTransaction(Grants):
    """Grants as the transaction saw them when it first asked: whoever loses one meanwhile lost it after its end."""

    def __init__(self, grants: Grants) -> None:
        self._grants = grants
        self._seen: dict[tuple[Tenant, str], set[tuple[str, str]]] = {}

    def of(self, connection: Connection, actor: Actor) -> set[tuple[str, str]]:
        key = (actor.tenant, actor.user_id)
        if key not in self._seen:
            self._seen[key] = self._grants.of(connection, actor)
        return self._seen[key]


def _statement(catalogue: Catalogue) -> Select[Any]:
    where = catalogue.permissions
    names = (where.tenant.brands, where.tenant.subsidiary, where.user, where.form, where.op_type)
    table = Table(str(where.table), MetaData(), *(Column(name, KEY) for name in dict.fromkeys(names)))
    brands, subsidiary, user, form, op_type = (table.c[name] for name in names)
    return select(user, form, op_type).where(
        brands == bindparam("b"), subsidiary == bindparam("s"), user == bindparam("u")
    )
