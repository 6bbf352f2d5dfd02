"""Draft catalogue entries from an existing database: a beginning for a person to finish, loadable as it is.

Columns become fields with type, length and label (the column's comment), foreign keys become references, usual names
tell tenant, maker and state columns. Operations are left empty on purpose: what is not listed is denied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, SmallInteger
from sqlalchemy.dialects import mysql

from staging.storage.engine import read_connection
from workers.erp.checks import guess
from workers.erp.checks.column_types import Kind, kind_of
from workers.erp.checks.reflect import Database, ForeignKey, LiveColumn, LiveTable

_NOTES = {
    "head": (
        "由 opstage forms introspect 起草，请逐项核对。未列出的操作一律拒绝：按需填写 operations。",
        "Drafted by opstage forms introspect: check every line. Operations not listed are denied: fill them in.",
    ),
    "grants": ("存放权限的表，或 {allow_all: true}", "the table with the grants, or {allow_all: true}"),
    "tenant": ("未找到租户列，请指明", "no tenant columns found: name them"),
    "number": ("请按实际编号规则修改", "put the real rule here"),
    "float": ("二进制浮点列，请改为 DECIMAL", "a binary float: change the column to DECIMAL"),
    "skipped": ("类型不支持", "type not supported"),
    "guessed": ("按列名猜测，请核对", "guessed from the column's name: check it"),
    "outside": ("引用的表不在目录中", "refers to a table that is not in this catalogue"),
    "missing": ("数据库中没有此表", "no such table in the database"),
}


def introspect(engine: Engine, tables: Sequence[str], locale: str = "zh") -> str:
    """Return YAML for ``tables``; a table with a parent column pointing at another of them becomes its child lines.

    Notes to the reader are in ``locale``. Raises ValueError if none of the tables exists.
    """
    with read_connection(engine) as connection:
        database = Database(connection)
        found = [live for name in tables if (live := database.table(name))]
    if not found:
        raise ValueError(f"none of these tables exists: {', '.join(tables)}")
    draft = _Draft(locale, {live.name: live for live in found})
    missing = [f"# {name}: {draft.note('missing')}" for name in tables if name not in draft.tables]
    return "\n".join([*draft.head(), *missing, *draft.forms(), ""])


@dataclass(frozen=True, slots=True)
class _Parent:
    column: str
    table: str


class _Draft:
    def __init__(self, locale: str, tables: dict[str, LiveTable]) -> None:
        self._zh = locale == "zh"
        self.tables = tables
        self._parents = {name: parent for name, live in tables.items() if (parent := self._parent(live))}

    def note(self, key: str) -> str:
        return _NOTES[key][0 if self._zh else 1]

    def head(self) -> list[str]:
        return [
            f"# {self.note('head')}",
            "version: 1",
            f"permissions: {{table: sys_grant}}  # {self.note('grants')}",
        ]

    def forms(self) -> list[str]:
        lines = ["forms:"]
        for name, live in self.tables.items():
            if name not in self._parents:
                lines += ["", *self._form(live)]
        return lines

    def _parent(self, live: LiveTable) -> _Parent | None:
        column = guess.first(live.columns, guess.PARENT)
        keys = [k for k in live.foreign_keys if k.table in self.tables and k.table != live.name]
        by_key = next((k for k in keys if k.column == column), None)
        if by_key:
            return _Parent(by_key.column, by_key.table)
        if column is None:
            return None
        # No foreign key: the longest other table name this one begins with (order → order_line).
        stem = live.name.lower()
        above = [
            n for n in self.tables if n != live.name and stem.startswith(n.lower().removesuffix("master"))
        ]
        return _Parent(column, max(above, key=len)) if above else None

    def _form(self, live: LiveTable) -> list[str]:
        system = _System(live)
        note = "" if system.brands and system.subsidiary else f"  # {self.note('tenant')}"
        tenant = {"brands": system.brands or "sBrandsId", "subsidiary": system.subsidiary or "sSubsidiaryId"}
        taken: set[str] = set()
        fields = self._fields(live, system, taken, "      ")
        lines = [
            f"  - id: {guess.form_id(live.name)}",
            "    module: erp",
            f"    label: {self._label(live.comment, live.name)}",
            f"    table: {_text(live.name)}",
            f"    key: {_text(system.key)}",
            f"    tenant: {_flow(tenant)}{note}",
        ]
        lines += [f"    {name}: {_flow(stamp)}" for name, stamp in system.stamps() if stamp]
        states = {name: stamp for name, stamp in system.states() if stamp}
        if states:
            lines += ["    states:", *(f"      {name}: {_flow(stamp)}" for name, stamp in states.items())]
        number = system.number
        if number:
            name = next(n for n, column in fields.names.items() if column == number)
            rule = f"number: {{field: {name}, rule: {_text('NO{yyyyMM}{seq:4}')}}}"
            lines.append(f"    {rule}  # {self.note('number')}")
        title = [name for name, column in fields.names.items() if column in (number, *self._title(live))]
        if title:
            lines.append(f"    title: [{', '.join(title)}]")
        lines += ["    operations: {}", "    fields:", *fields.lines]
        return lines + self._children(live, taken, "    ")

    def _children(self, live: LiveTable, taken: set[str], indent: str) -> list[str]:
        below = [self.tables[n] for n, parent in self._parents.items() if parent.table == live.name]
        lines = [f"{indent}children:"] if below else []
        for child in below:
            system = _System(child)
            parent = self._parents[child.name].column
            line_no = guess.first(child.columns, guess.LINE_NO)
            inner: set[str] = set()
            fields = self._fields(child, system, inner, f"{indent}      ", {parent, line_no})
            lines += [
                f"{indent}  - name: {guess.public_name(child.name, taken)}",
                f"{indent}    label: {self._label(child.comment, child.name)}",
                f"{indent}    table: {_text(child.name)}",
                f"{indent}    key: {_text(system.key)}",
                f"{indent}    parent: {_text(parent)}",
                f"{indent}    line_no: {_text(line_no) if line_no else 'null'}",
            ]
            if system.brands and system.subsidiary:
                lines.append(
                    f"{indent}    tenant: {_flow({'brands': system.brands, 'subsidiary': system.subsidiary})}"
                )
            lines += [f"{indent}    fields:", *fields.lines]
            lines += self._children(child, inner, f"{indent}    ")
        return lines

    def _fields(
        self,
        live: LiveTable,
        system: _System,
        taken: set[str],
        indent: str,
        hidden: set[str | None] | None = None,
    ) -> _Fields:
        skip = system.hidden | (hidden or set())
        keys = {k.column: k for k in live.foreign_keys}
        names = _public_names(live, skip, taken)
        fields = _Fields([], {})
        for column in live.columns.values():
            if column.name in skip:
                continue
            entry, note = self._field(column, keys.get(column.name), system)
            if entry is None:
                fields.lines.append(f"{indent}# {column.name} {column.type}: {note}")
                continue
            name = names[column.name]
            fields.names[name] = column.name
            start = f"name: {name}, column: {_text(column.name)}, label: {self._label(column.comment, column.name)}"
            fields.lines.append(f"{indent}- {{{start}, {entry}}}" + (f"  # {note}" if note else ""))
        return fields

    def _title(self, live: LiveTable) -> list[str]:
        """The columns people call a record by."""
        texts = [c.name for c in live.columns.values() if kind_of(c) is Kind.TEXT]
        return [name for name in texts if guess.names_record(name, live.name)]

    def _reference(self, table: str) -> dict[str, Any]:
        live = self.tables[table]
        names = _public_names(live, _System(live).hidden, set())
        by = [names[column] for column in self._title(live) if column in names]
        return {"form": guess.form_id(table), **({"names": by} if by else {})}

    def _field(self, column: LiveColumn, key: ForeignKey | None, system: _System) -> tuple[str | None, str]:
        entry, note = _type_of(column)
        if entry is None:
            return None, self.note(note)
        roots = [name for name in self.tables if name not in self._parents]
        if key and kind_of(column) is Kind.TEXT:
            if key.table in roots:
                entry = {"type": "reference", "reference": self._reference(key.table)}
            else:
                note = "outside"
        elif kind_of(column) is Kind.TEXT and (table := guess.refers_to(column.name, roots)):
            entry, note = {"type": "reference", "reference": self._reference(table)}, "guessed"
        elif kind_of(column) in (Kind.INTEGER, Kind.BOOLEAN) and column.name in system.flags:
            entry = {"type": "boolean"}
        if column.name in system.columns or column.numbered:
            entry["writable"] = False
        elif not column.nullable and not column.has_default:
            entry["required"] = True
        return _flow(entry)[1:-1], self.note(note) if note else ""

    def _label(self, comment: str, name: str) -> str:
        return _flow({"zh": comment or name, "en": guess.words(name)})


@dataclass(slots=True)
class _Fields:
    lines: list[str]
    names: dict[str, str]


class _System:
    """The columns of a table that only the system writes, as far as their names tell."""

    def __init__(self, live: LiveTable) -> None:
        names = list(live.columns)
        self.key = _key(live)
        self.brands, self.subsidiary = guess.first(names, guess.BRANDS), guess.first(names, guess.SUBSIDIARY)
        self._maker = _stamp(names, guess.MAKER, guess.MADE_AT, None)
        self._modified = _stamp(names, guess.MODIFIER, guess.MODIFIED_AT, None)
        self._examined = _stamp(names, guess.EXAMINED, guess.EXAMINED_AT, guess.EXAMINED_BY)
        self._invalid = _stamp(names, guess.INVALID, guess.INVALID_AT, guess.INVALID_BY)
        self.number = guess.first(names, guess.NUMBER)
        self.flags = {s["column"] for s in (self._examined, self._invalid) if s}
        self.hidden: set[str | None] = {self.key, self.brands, self.subsidiary}
        stamps = (self._maker, self._modified, self._examined, self._invalid)
        self.columns: set[str | None] = {self.number, *(c for stamp in stamps for c in stamp.values())}

    def stamps(self) -> list[tuple[str, dict[str, str]]]:
        return [("maker", self._maker), ("modified", self._modified)]

    def states(self) -> list[tuple[str, dict[str, str]]]:
        return [("examined", self._examined), ("invalid", self._invalid)]


def _key(live: LiveTable) -> str:
    """The text column that identifies a record: the primary key; where that is a number, or several, an sId or id."""
    texts = [column.name for column in live.columns.values() if kind_of(column) is Kind.TEXT]
    if len(live.primary_key) == 1 and live.primary_key[0] in texts:
        return live.primary_key[0]
    return guess.first(texts, guess.KEY) or next(iter((*live.primary_key, *live.columns)))


def _public_names(live: LiveTable, hidden: set[str | None], taken: set[str]) -> dict[str, str]:
    """Column → public name, in the table's order; the names join ``taken``."""
    return {
        column.name: guess.public_name(column.name, taken)
        for column in live.columns.values()
        if column.name not in hidden and _type_of(column)[0] is not None
    }


def _stamp(
    names: list[str], column: tuple[str, ...], at: tuple[str, ...], by: tuple[str, ...] | None
) -> dict[str, str]:
    found = guess.first(names, column)
    if found is None:
        return {}
    parts = {"column": found, "by": guess.first(names, by) if by else None, "at": guess.first(names, at)}
    return {key: value for key, value in parts.items() if value}


def _type_of(column: LiveColumn) -> tuple[dict[str, Any] | None, str]:
    kind = kind_of(column)
    length = getattr(column.type, "length", None)
    match kind:
        case Kind.TEXT if isinstance(length, int):
            return {"type": "string", "length": length}, ""
        case Kind.TEXT if isinstance(column.type, mysql.TEXT | mysql.TINYTEXT):
            room = 65_535 if isinstance(column.type, mysql.TEXT) else 255  # bytes
            return {"type": "text", "length": room // 4}, ""
        case Kind.TEXT:
            return {"type": "text"}, ""
        case Kind.INTEGER if _is_yes_no(column):
            return {"type": "boolean"}, ""
        case Kind.INTEGER:
            return {"type": "integer"}, ""
        case Kind.BOOLEAN | Kind.BITS:
            return {"type": "boolean"}, ""
        case Kind.EXACT:
            precision, scale = getattr(column.type, "precision", None), getattr(column.type, "scale", None)
            return {
                "type": "decimal",
                "precision": min(precision or 18, 38),
                "decimals": min(scale or 0, 10),
            }, ""
        case Kind.FLOAT:
            return None, "float"
        case Kind.DATE:
            return {"type": "date"}, ""
        case Kind.DATETIME:
            return {"type": "datetime"}, ""
    return None, "skipped"


def _is_yes_no(column: LiveColumn) -> bool:
    if isinstance(column.type, mysql.TINYINT):
        return column.type.display_width == 1 or guess.is_flag(column.name)
    return isinstance(column.type, SmallInteger) and guess.is_flag(column.name)


def _flow(value: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_flow_value(v)}" for key, v in value.items()) + "}"


def _flow_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return _flow(value) if isinstance(value, dict) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str) and value.isidentifier() and value.lower() not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)
