"""The catalogue as the API shows it: forms, schemas, choices of a field, one record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, and_, or_, select

from staging.contracts.error import ErrorCode
from staging.contracts.form import Child, Default, FieldType, Form, FormField, Reference
from staging.contracts.query import AppliedSort, PageRequest, QueryRequest, QueryResult
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind
from staging.domain.query import plan
from staging.storage.dialect import flag_is
from workers.erp.handlers import HandlerRegistry
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.command_schema import described
from workers.erp.sql.permissions import Grants, allows, sees
from workers.erp.sql.preview import op_label
from workers.erp.sql.problems import close_names
from workers.erp.sql.queries import Queries
from workers.erp.sql.read_payload import stored_node
from workers.erp.sql.records import find_record
from workers.erp.sql.references import shown_fields
from workers.erp.sql.texts import Texts
from workers.erp.sql.tree import load_lines
from workers.erp.sql.values import to_json

_UNUSABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


class Lookups:
    """All within the actor's tenant; a form shows itself to whoever is granted anything on it."""

    def __init__(
        self, tables: CatalogueTables, grants: Grants, handlers: HandlerRegistry, queries: Queries
    ) -> None:
        self._tables, self._grants, self._handlers, self._queries = tables, grants, handlers, queries

    def forms(self, connection: Connection, actor: Actor, q: str) -> list[dict[str, Any]]:
        """``[{formId, module, label, opTypes: [{opType, label, commandType, autoExecute, …}]}]`` of what is granted."""
        grants = self._grants.of(connection, actor)
        words = q.casefold().split()
        found = []
        for form in self._tables.forms.values():
            searched = f"{form.id} {form.module} {form.label.zh} {form.label.en}".casefold()
            granted = sees(grants, form.id)
            if granted and all(word in searched for word in words):
                found.append(
                    {
                        "formId": form.id,
                        "module": form.module,
                        "label": form.label.text(actor.locale),
                        "opTypes": self._operations(form, grants, actor.locale),
                    }
                )
        return found

    def form_schema(self, connection: Connection, actor: Actor, form_id: str) -> dict[str, Any]:
        """The form with fields and lines, what each may hold, what may be asked of it, and the operations granted."""
        form = self._tables.form(form_id)
        grants = self._grants.of(connection, actor)
        if (
            actor.kind is not ActorKind.OPERATOR
        ):  # who runs the queue reads its labels, and is no user of the ERP
            self._grants.require_any(connection, actor, form.id)
        return {
            "formId": form.id,
            "module": form.module,
            "label": form.label.text(actor.locale),
            "title": form.title,
            "naturalKey": form.natural_key,
            "numberField": form.number.field if form.number else None,
            "opTypes": self._operations(form, grants, actor.locale),
            "generateFrom": [
                {"formId": g.source, "lines": g.source_child, "targetLines": g.target_child}
                for g in form.generate
            ],
            **_level(form, actor.locale),
            **self._queries.described(form, actor.locale),
        }

    def field_options(
        self, connection: Connection, actor: Actor, form_id: str, path: str, q: str, page: int
    ) -> QueryResult:
        """Choices of a reference or choice field; ``path`` ``customer`` or ``lines.product``. Raises field_unknown."""
        form = self._tables.form(form_id)
        self._grants.require_any(connection, actor, form.id)
        field = _field_at(form, path)
        request = QueryRequest(page=PageRequest(number=page))
        if field.reference is None:
            return _choices(field, q, request, actor.locale)
        return self._records(connection, actor, field.reference, q, request)

    def record(self, connection: Connection, actor: Actor, form_id: str, record: str) -> dict[str, Any]:
        """``{formId, id, label, values, texts, states, children: {child: [{id, values, texts, children}]}}``."""
        form = self._tables.form(form_id)
        self._grants.require_any(connection, actor, form.id)
        found = find_record(connection, self._tables, actor.tenant, form, record)
        master = self._tables.master(form.id)
        root = Node(master, form, "keep", key=found.key, old=found.values)
        for name, table in master.children.items():
            lines = load_lines(connection, table, actor.tenant, [found.key])
            root.children[name] = [stored_node(table, root.child(name), line, root) for line in lines]
        texts = Texts(connection, self._tables, actor.tenant, actor.locale)
        texts.want_nodes(root.walk())
        texts.load()
        states = {
            name: bool(found.flags[stamp.column])
            for name, stamp in (("examined", form.states.examined), ("invalid", form.states.invalid))
            if stamp
        }
        shown = _row(root, texts)
        return {
            "formId": form.id,
            "label": texts.title(form, found.key, found.values),
            "states": states,
            **shown,
        }

    def _operations(self, form: Form, grants: set[tuple[str, str]], locale: str) -> list[dict[str, Any]]:
        """What is granted; a registered command also says what it is for and, as JSON Schema, what it takes."""
        own: list[dict[str, Any]] = [
            {
                "opType": op.value,
                "label": op_label(op, locale),
                "commandType": form.command_type(op),
                "autoExecute": policy.execution == "auto",
            }
            for op, policy in form.operations.items()
        ]
        commands = [
            {
                "opType": c.policy.command_type.rpartition(".")[2],
                "label": c.policy.label.text(locale),
                "commandType": c.policy.command_type,
                "autoExecute": c.policy.execution == "auto",
                **described(c, form, locale),
            }
            for c in self._handlers
            if c.policy.form == form.id
        ]
        return [entry for entry in (*own, *commands) if allows(grants, form.id, entry["opType"])]

    def _records(
        self, connection: Connection, actor: Actor, reference: Reference, q: str, request: QueryRequest
    ) -> QueryResult:
        form, master = self._tables.form(reference.form), self._tables.master(reference.form)
        shown = shown_fields(form, reference)
        paging = plan(request, (), "id", (AppliedSort(field="id", direction="ASC"),), actor.locale)
        terms: list[ColumnElement[bool]] = list(master.of_tenant(actor.tenant))
        if reference.valid_only and form.states.invalid:
            terms.append(flag_is(master.named(form.states.invalid.column), False))
        searched = [
            master.column(n) for n in shown if master.fields[n].type in (FieldType.STRING, FieldType.TEXT)
        ]
        terms += [
            or_(*(c.icontains(word, autoescape=True) for c in searched), master.key == word)
            for word in _UNUSABLE.sub(" ", q).split()
        ]
        columns: list[Column[Any]] = [master.key, *(master.column(n) for n in shown)]
        statement = select(*columns).where(and_(*terms)).order_by(master.key)
        rows = connection.execute(statement.offset(paging.offset).limit(paging.size + 1)).all()
        texts = Texts(connection, self._tables, actor.tenant, actor.locale)
        values = {
            row[0]: {n: to_json(master.fields[n], v) for n, v in zip(shown, tuple(row)[1:], strict=True)}
            for row in rows
        }
        for record in values.values():
            for name in shown:
                texts.want(master.fields[name], record[name])
        texts.load()
        items = [
            {"id": key, "label": _joined(master.fields, record, texts), **record}
            for key, record in values.items()
        ]
        return QueryResult(
            items=items[: paging.size],
            page=paging.page(len(rows), None),
            applied_sort=list(paging.sort),
            warnings=list(paging.warnings),
        )


def _joined(fields: Mapping[str, FormField], values: Mapping[str, Any], texts: Texts) -> str:
    return " ".join(text for name, value in values.items() if (text := texts.of(fields[name], value)))


def _row(node: Node, texts: Texts) -> dict[str, Any]:
    return {
        "id": node.key,
        "values": node.old,
        "texts": {name: texts.of(node.fields[name], value) for name, value in node.old.items()},
        "children": {name: [_row(line, texts) for line in lines] for name, lines in node.children.items()},
    }


def _choices(field: FormField, q: str, request: QueryRequest, locale: str) -> QueryResult:
    paging = plan(request, (), "value", (AppliedSort(field="value", direction="ASC"),), locale)
    word = q.casefold()
    items = [
        {"id": c.value, "label": c.label.text(locale)}
        for c in field.choices
        if word in f"{c.value} {c.label.zh} {c.label.en}".casefold()
    ]
    chosen = items[paging.offset : paging.offset + paging.size + 1]
    return QueryResult(
        items=chosen[: paging.size], page=paging.page(len(chosen), len(items)), applied_sort=list(paging.sort)
    )


def _field_at(form: Form, path: str) -> FormField:
    level: Form | Child = form
    *children, name = path.split(".")
    for step in children:
        below = next((c for c in level.children if c.name == step), None)
        if below is None:
            raise _unknown(path, step, level)
        level = below
    field = next((f for f in level.fields if f.name == name), None)
    if field is None:
        raise _unknown(path, name, level)
    return field


def _unknown(path: str, name: str, level: Form | Child) -> Refused:
    near = close_names(name, level)
    return Refused(ErrorCode.FIELD_UNKNOWN, {"field": path, "near": ", ".join(near)})


def _level(of: Form | Child, locale: str) -> dict[str, Any]:
    return {
        "fields": [_field(field, locale) for field in of.fields],
        "children": [
            {
                "name": child.name,
                "label": child.label.text(locale),
                "minLines": child.min_lines,
                "maxLines": child.max_lines,
                "unique": child.unique,
                **_level(child, locale),
            }
            for child in of.children
        ],
    }


def _field(field: FormField, locale: str) -> dict[str, Any]:
    """Only what says something: an empty limit is left out."""
    reference = field.reference
    described: dict[str, Any] = {
        "name": field.name,
        "label": field.label.text(locale),
        "type": field.type.value,
        "required": field.required,
        "writable": field.accepts_input,
        "onUpdate": field.accepts_input and field.on_update,
        "computed": field.computed is not None,
        "sortable": field.sortable,
        "filterable": field.filterable,
        "length": field.length,
        "precision": field.precision if field.type is FieldType.DECIMAL else None,
        "decimals": field.decimals,
        "minimum": None if field.minimum is None else str(field.minimum),
        "maximum": None if field.maximum is None else str(field.maximum),
        "choices": [{"value": c.value, "label": c.label.text(locale)} for c in field.choices] or None,
        "reference": {"form": reference.form, "by": ["id", *reference.names]} if reference else None,
        "default": _default(field.default) if field.default else None,
    }
    return {key: value for key, value in described.items() if value is not None}


def _default(default: Default) -> dict[str, Any]:
    if default.copy_from:
        return {"copy": default.copy_from}
    for kind in ("now", "today", "maker"):
        if getattr(default, kind):
            return {kind: True}
    return {"value": str(default.value) if not isinstance(default.value, str | bool | int) else default.value}
