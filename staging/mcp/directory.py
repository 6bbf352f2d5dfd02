"""What a caller may do, as the API tells it: who they are, the forms, commands and queries granted. Kept for 30 s."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from staging.contracts.error import ErrorCode
from staging.mcp.identity import Identity
from staging.mcp.shapes import Shape
from staging.mcp.upstream import Caller, ToolRefused, Upstream

log = logging.getLogger(__name__)
_FRESH_S = 30.0
_MAX_KEPT = 1_000
_NAME_LENGTH = 64  # what the narrowest hosts take
_PREFIX = "prepare_"
_QUERY_PREFIX = "query_"


class Who(Shape):
    """Whom a credential acts for; see ``GET /v1/me``."""

    user_id: str
    brands_id: str
    subsidiary_id: str
    kind: str
    locale: str

    def is_person_of(self, agent: Who) -> bool:
        """True for a person's credential of the same user and tenant as ``agent``'s."""
        return self.kind == "person" and self._user() == agent._user()

    def _user(self) -> tuple[str, str, str]:
        return self.user_id, self.brands_id, self.subsidiary_id


class Operation(Shape):
    """An operation type of a form, or a registered command (which has an ``input_schema``)."""

    op_type: str
    label: str
    command_type: str
    auto_execute: bool
    description: str = ""
    input_schema: dict[str, Any] | None = None


class Query(Shape):
    """A registered domain query; see ``GET /v1/queries``."""

    name: str
    label: str
    description: str
    filter_schema: dict[str, Any]
    row_schema: dict[str, Any]
    sortable: list[str]

    @property
    def tool(self) -> str:
        return f"{_QUERY_PREFIX}{self.name}"


class FormEntry(Shape):
    form_id: str
    module: str
    label: str
    op_types: list[Operation] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Directory:
    """``tools``: name of the prepare tool → (form, command), for every registered command granted."""

    me: Who
    forms: list[FormEntry]
    may_confirm: bool
    tools: dict[str, tuple[FormEntry, Operation]] = field(default_factory=dict)
    queries: list[Query] = field(default_factory=list)

    def tool_of(self, command_type: str) -> str:
        """Name of the tool that prepares this command, "" where ``preview_change`` does."""
        return next((name for name, (_, op) in self.tools.items() if op.command_type == command_type), "")


class Directories:
    """Directories by caller. The API decides anew at every call: an old entry shows too much or too little, no more."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._kept: dict[str, tuple[float, Directory]] = {}

    async def of(self, identity: Identity) -> Directory:
        """Raises ToolRefused where the API refuses or cannot be reached."""
        kept = self._kept.get(identity.key)
        if kept and kept[0] > time.monotonic():
            return kept[1]
        made = await self._ask(identity)
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[identity.key] = (time.monotonic() + _FRESH_S, made)
        return made

    async def _ask(self, identity: Identity) -> Directory:
        caller = Caller(self._upstream, identity.token)
        me = Who.model_validate(await caller.get("me"))
        forms = [FormEntry.model_validate(entry) for entry in await caller.get("forms")]
        person = await self._person(identity)
        commands = [(f, op) for f in forms for op in f.op_types if op.input_schema is not None]
        names = _names([op.command_type for _, op in commands])
        return Directory(
            me=me,
            forms=forms,
            may_confirm=person is not None and person.is_person_of(me),
            tools={names[op.command_type]: (form, op) for form, op in commands},
            queries=[Query.model_validate(entry) for entry in await caller.get("queries")],
        )

    async def _person(self, identity: Identity) -> Who | None:
        if not identity.person_token:
            return None
        try:
            return Who.model_validate(await Caller(self._upstream, identity.person_token).get("me"))
        except ToolRefused as refusal:
            if refusal.error.code is not ErrorCode.UNAUTHENTICATED:
                raise
            log.warning("the person's token is not valid (any more): nothing can be confirmed here")
            return None


def _names(command_types: list[str]) -> dict[str, str]:
    """``erp.sales_order.create`` → ``prepare_erp_sales_order_create``; a hash tells apart what would be alike or too
    long."""
    plain = {c: _PREFIX + re.sub(r"[^A-Za-z0-9_-]", "_", c) for c in command_types}
    alike = {name for name in plain.values() if list(plain.values()).count(name) > 1}
    return {
        c: name if name not in alike and len(name) <= _NAME_LENGTH else _hashed(name, c)
        for c, name in plain.items()
    }


def _hashed(name: str, command_type: str) -> str:
    mark = hashlib.sha256(command_type.encode()).hexdigest()[:8]
    return f"{name[: _NAME_LENGTH - 9]}_{mark}"
