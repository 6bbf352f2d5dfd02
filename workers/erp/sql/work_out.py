"""Works an operation of a form out, without doing it: the one implementation that prepare, confirm and execution share.

In: what was asked for. Out: the normalized change, pins, and whom it may duplicate. Reads only; with ``lock`` (at
execution) the record, its source and their lines are locked where the engine has row locks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused, rule
from staging.domain.identity import Actor
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.change import Node
from workers.erp.sql.completeness import check_complete, compute_totals
from workers.erp.sql.defaults import Defaults
from workers.erp.sql.duplicates import find_duplicates, hold_natural_keys, natural_key
from workers.erp.sql.pins import Pins, add_source_pins, pins_of, require_unchanged
from workers.erp.sql.problems import Problems
from workers.erp.sql.read_payload import PayloadReader, stored_node
from workers.erp.sql.records import Record, find_record, read_record
from workers.erp.sql.referenced_by import check_not_referenced
from workers.erp.sql.references import References, wanted_references
from workers.erp.sql.sources import Chosen, check_left, fill_target, not_a_generate, read_chosen
from workers.erp.sql.states import REQUIRED, check
from workers.erp.sql.texts import Texts
from workers.erp.sql.tree import load_lines

_NEW = (OpType.CREATE, OpType.GENERATE)
_TAKES_AWAY = (OpType.CANCEL_EXAMINE, OpType.INVALID, OpType.DELETE)
_ROUNDS = 3  # a default copied through a default copied through a chosen reference


@dataclass(frozen=True, slots=True)
class Ask:
    """An operation as asked for. ``seen``: pins of when ``payload`` was normalized here (trusted), None if it was not.

    ``record``: id or document number (trusted: id). ``now`` aware UTC, ``today`` the tenant's local date.
    """

    actor: Actor
    form: Form
    op: OpType
    record: str
    payload: Mapping[str, Any]
    source_ref: Mapping[str, Any] | None
    now: datetime
    today: date
    allow_duplicate: bool = False
    seen: Mapping[str, Any] | None = None
    lock: bool = False

    @property
    def trusted(self) -> bool:
        return self.seen is not None


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """The change; a ``Plan`` for ``apply_form_operation``. ``read``: child → fields it reads of every line."""

    root: Node
    pins: Pins
    payload: dict[str, Any]
    target_bill_id: str
    source_ref: dict[str, Any] | None
    read: dict[str, list[str]]
    duplicate: str = ""


def work_out(connection: Connection, tables: CatalogueTables, ask: Ask) -> WorkedOut:
    """Raises ``ValidationFailed`` with every bad field; record_not_found, record_ambiguous, state_conflict,
    version_conflict, business_rule, possible_duplicate."""
    (worked,) = work_out_all(connection, tables, [ask])
    return worked


def work_out_all(connection: Connection, tables: CatalogueTables, asks: Sequence[Ask]) -> list[WorkedOut]:
    """``work_out`` of several creates of one form, tenant and trust: what they refer to and what they may repeat is
    looked up together. What is wrong with any of them is raised, not with which; so are twins among them."""
    problems = Problems()
    works = [_Work(connection, tables, ask, problems) for ask in asks]
    roots = [work.begin() for work in works]
    first = asks[0]
    references = References(connection, tables, first.actor.tenant, problems, ids_only=first.trusted)
    references.resolve([one for root in roots for one in wanted_references(root.touched())])
    plans = [work.end(root, references) for work, root in zip(works, roots, strict=True)]
    return _guarded(connection, tables, works, plans)


def _guarded(
    connection: Connection, tables: CatalogueTables, works: Sequence[_Work], plans: Sequence[WorkedOut]
) -> list[WorkedOut]:
    """The duplicate guard, last of all: at execution twins in flight are waited for."""
    ask = works[0].ask
    form, tenant = ask.form, ask.actor.tenant
    keys = [natural_key(form, plan.root) for plan in plans]
    guarded = [
        k for work, k in zip(works, keys, strict=True) if work.ask.lock and not work.ask.allow_duplicate
    ]
    hold_natural_keys(connection, tables, tenant, form, guarded)
    roots = {key: plan.root for key, plan in zip(keys, plans, strict=True)}
    found = find_duplicates(connection, tables, tenant, form, roots)
    done, before = [], set()
    for work, plan, key in zip(works, plans, keys, strict=True):
        if key in before and not work.ask.allow_duplicate:
            raise Refused(ErrorCode.POSSIBLE_DUPLICATE, {"record": key})
        before |= {key} - {""}
        done.append(work.guarded(plan, found.get(key, "")))
    return done


class _Work:
    def __init__(self, connection: Connection, tables: CatalogueTables, ask: Ask, problems: Problems) -> None:
        self._connection, self._tables, self.ask = connection, tables, ask
        self._form, self._tenant = ask.form, ask.actor.tenant
        self._problems = problems
        self._master = tables.master(ask.form.id)
        self._reader = PayloadReader(ask.form, self._master, self._problems, trusted=ask.trusted)
        self._record: Record | None = None
        self._chosen: Chosen | None = None

    def begin(self) -> Node:
        """The tree, references as they were given."""
        ask = self.ask
        root = self._new() if ask.op in _NEW else self._existing()
        if ask.trusted:
            self._problems.raise_any()
            require_unchanged(self._pins(root), ask.seen or {}, ask.record, ask.actor.locale)
        return root

    def end(self, root: Node, references: References) -> WorkedOut:
        """All the rest, once the references of ``begin``'s tree are resolved."""
        ask = self.ask
        self._complete(root, references)
        # The other types say nothing but "this record"; what a delete removes is in the pins.
        payload = root.payload() if ask.op in (*_NEW, OpType.UPDATE) else {}
        if ask.trusted and payload != ask.payload:
            # The same input worked out differently: other rules than when it was shown (I2).
            raise Refused(ErrorCode.VERSION_CONFLICT, {"record": ask.record})
        if ask.op is OpType.UPDATE and not root.is_changed():
            raise rule("没有任何变化", "Nothing would change")
        if self._chosen:
            check_left(self._chosen)
        return WorkedOut(
            root=root,
            pins=self._pins(root),
            payload=payload,
            target_bill_id=root.key,
            source_ref=self._chosen.ref if self._chosen else None,
            read=self._read(),
        )

    def _new(self) -> Node:
        ask = self.ask
        if ask.record:
            self._problems.bad("record", "新增没有目标单据", "a new record has no target")
        if ask.op is OpType.GENERATE:
            self._chosen = read_chosen(
                self._connection,
                self._tables,
                self._tenant,
                self._form,
                ask.source_ref,
                self._problems,
                lock=ask.lock,
            )
        elif ask.source_ref:
            raise not_a_generate()
        root = self._reader.create(ask.payload)
        if self._chosen:
            fill_target(root, self._chosen, self._tables, self._problems)
        return root

    def _existing(self) -> Node:
        ask, form = self.ask, self._form
        if ask.source_ref:
            raise not_a_generate()
        record = find_record(self._connection, self._tables, self._tenant, form, ask.record, lock=ask.lock)
        self._record = record
        check(form, record.flags, REQUIRED[ask.op])
        if ask.op in _TAKES_AWAY:
            check_not_referenced(self._connection, self._tables, self._tenant, form, record.key)
        if ask.op is OpType.UPDATE:
            named = [name for name in self._master.children if name in ask.payload]
            lines = {name: self._lines(name, record.key) for name in named}
            return self._reader.update(ask.payload, record.key, record.values, lines)
        for name in ask.payload:
            self._problems.unknown(name[:200], name, form)
        root = Node(self._master, form, "keep", key=record.key, old=record.values)
        removed = ask.op is OpType.DELETE and form.operations[ask.op].physical
        for name in self._master.children if removed else self._read():
            table, child = self._master.children[name], root.child(name)
            root.children[name] = [
                stored_node(table, child, line, root) for line in self._lines(name, record.key)
            ]
        if removed:
            for node in root.walk():
                node.action = "remove"
        return root

    def _lines(self, name: str, key: str) -> Any:
        table = self._master.children[name]
        return load_lines(self._connection, table, self._tenant, [key], lock=self.ask.lock)

    def _read(self) -> dict[str, list[str]]:
        """What examining and its reverse read of the lines: what they move in stock."""
        stock = self._form.stock
        if stock is None or self.ask.op not in (OpType.EXAMINE, OpType.CANCEL_EXAMINE):
            return {}
        return {stock.child: [stock.product, stock.warehouse, stock.quantity]}

    def _complete(self, root: Node, references: References) -> None:
        """Defaults and what they refer to, what must be there, totals; then every problem at once."""
        ask = self.ask
        if not ask.trusted:
            _drop_unchanged(root)
            defaults = Defaults(self._connection, self._tables, ask.actor, ask.now, ask.today)
            for _ in range(_ROUNDS):
                before = {id(node): set(node.new) for node in root.walk()}
                filled = defaults.fill(root.walk())
                if not filled:
                    break
                fresh = [w for w in wanted_references(filled) if w.field.name not in before[id(w.node)]]
                references.resolve(list({w.path: w for w in fresh}.values()))
        check_complete(root, self._problems)
        if not self._problems.found:
            compute_totals(root, self._problems)
        self._problems.raise_any()

    def _pins(self, root: Node) -> Pins:
        pins = pins_of(self._form, root, self._record.flags if self._record else None, read=self._read())
        if self._chosen:
            source = self._tables.form(self._chosen.source.generate.source)
            add_source_pins(pins, source, self._chosen.source)
        return pins

    def guarded(self, plan: WorkedOut, found: str) -> WorkedOut:
        """``plan``, which repeats the record ``found`` ("": none); raises possible_duplicate unless that is allowed."""
        if not found or self.ask.allow_duplicate:
            return replace(plan, duplicate=found) if found else plan
        record = read_record(self._connection, self._tables, self._tenant, self._form, found)
        values = record.values if record else {}
        texts = Texts(self._connection, self._tables, self._tenant, self.ask.actor.locale)
        texts.want_title(self._form, values)
        texts.load()
        title = texts.title(self._form, found, values)
        shown = {name: values.get(name) for name in self._form.title}
        raise Refused(
            ErrorCode.POSSIBLE_DUPLICATE,
            {"record": title},
            candidates=({"id": found, **shown, "label": title},),
        )


def _drop_unchanged(root: Node) -> None:
    """A reference given by name may turn out to be the one that is stored."""
    for node in root.touched():
        if node.action == "change":
            for name in [n for n, value in node.new.items() if value == node.old.get(n)]:
                del node.new[name]
