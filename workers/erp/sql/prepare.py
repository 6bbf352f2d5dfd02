"""Prepare, confirm's second look, and execution of one operation: of a form, or of a registered command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from staging.contracts.error import ErrorCode
from staging.contracts.form import Child, Form
from staging.contracts.preparation import OpType, PrepareItem, PreviewWarning
from staging.domain.errors import Refused
from staging.domain.identity import Actor, Tenant
from staging.domain.ports import Execution, Outcome, Prepared, Route
from workers.erp.command import CommandContext, CommandPlan
from workers.erp.handlers import Registered
from workers.erp.sql.apply import apply_form_operations, stock_moves
from workers.erp.sql.catalogue_tables import CatalogueTables
from workers.erp.sql.commands import Waiting, command_preview, plan_command, require_same_pins
from workers.erp.sql.context import WriteContext
from workers.erp.sql.permissions import Grants
from workers.erp.sql.pins import version_of
from workers.erp.sql.preview import preview_of
from workers.erp.sql.records import read_record
from workers.erp.sql.routing import Router, Target
from workers.erp.sql.stock import look_at_stock
from workers.erp.sql.texts import Texts
from workers.erp.sql.work_out import Ask, WorkedOut, work_out, work_out_all


class Preparer:
    """``clock`` gives aware UTC; ``zone`` is the tenant's, for "today" in defaults and document numbers."""

    def __init__(
        self,
        tables: CatalogueTables,
        grants: Grants,
        router: Router,
        clock: Callable[[], datetime],
        zone: tzinfo,
    ) -> None:
        self._tables, self._grants, self._router = tables, grants, router
        self._clock, self._zone = clock, zone

    def prepare(self, connection: Connection, actor: Actor, item: PrepareItem) -> Prepared:
        """Work ``item`` out and show it. Reads only."""
        target = self._permitted(
            connection, self._grants, actor, item.form_id, item.op_type, item.command_type
        )
        if target.command:
            context = self._context(
                connection, actor, target, target.command, item.record, item.allow_duplicate
            )
            plan = plan_command(target.command, context, item.payload)
            return Prepared(
                route=target.route(plan.payload.__getitem__),
                payload=plan.payload,
                target_bill_id=plan.target_bill_id,
                source_ref=None,
                pins=plan.pins,
                target_version=version_of(plan.pins),
                preview=command_preview(target.command, context, plan),
            )
        worked = work_out(connection, self._tables, self._ask(actor, target, item, item.allow_duplicate))
        return self._shown(connection, actor, target, worked)

    def recheck(self, connection: Connection, actor: Actor, prepared: Prepared) -> None:
        """Permission, state, pins and references once more; execution looks at all of it again."""
        target = self._permitted_route(connection, self._grants, actor, prepared.route)
        if target.command:
            # Whether it repeats another record was decided when it was prepared; execution looks again.
            context = self._context(connection, actor, target, target.command, prepared.target_bill_id, True)
            require_same_pins(
                plan_command(target.command, context, prepared.payload),
                prepared.pins,
                prepared.target_bill_id,
            )
            return
        if target.op is OpType.CREATE and not _refers(target.form, prepared.payload):
            return  # it reads nothing that could have changed since
        item = PrepareItem(
            record=prepared.target_bill_id, payload=prepared.payload, source_ref=prepared.source_ref
        )
        work_out(connection, self._tables, self._ask(actor, target, item, True, seen=prepared.pins))

    def in_sets(self, execution: Execution) -> bool:
        """True where ``execute_all`` shares statements among several like this one."""
        target = self._router.find(*_names(execution.route))
        if target.command:
            return target.command.together is not None
        # Rows of other programs are worked out from names, which may mean what one before them has written.
        return target.op is OpType.CREATE and execution.prepared

    def execute_all(
        self, connection: Connection, grants: Grants, executions: Sequence[Execution]
    ) -> list[Outcome]:
        """Everything again, under lock, then the changes, those of a kind that follow each other as a set where they
        can be. No commit. ``grants``: as the transaction sees them."""
        outcomes: list[Outcome] = []
        for (names, _, in_sets), of_kind in groupby(executions, key=self._kind):
            target = self._router.find(*names)
            if target.command:
                outcomes += self._execute_commands(connection, grants, target.command, of_kind)
            else:
                for some in [list(of_kind)] if in_sets else [[one] for one in of_kind]:
                    outcomes += self._execute_forms(connection, grants, target, some)
        return outcomes

    def _kind(self, execution: Execution) -> tuple[tuple[str, str, str], Tenant, bool]:
        return _names(execution.route), execution.actor.tenant, self.in_sets(execution)

    def _execute_forms(
        self, connection: Connection, grants: Grants, target: Target, executions: Sequence[Execution]
    ) -> list[Outcome]:
        """Several only of those that go ``in_sets``."""
        now = self._clock()
        asks = []
        for execution in executions:
            grants.require(connection, execution.actor, target.form.id, target.verb)
            asks.append(self._ask_again(target, execution, now))
        plans = work_out_all(connection, self._tables, asks)
        for execution, plan in zip(executions, plans, strict=True):
            if _is_anew(execution) and _as_shown(target.form, plan.payload) != _as_shown(
                target.form, execution.payload
            ):
                raise Refused(ErrorCode.VERSION_CONFLICT, {"record": execution.target_bill_id})
            _require_version(execution, plan.pins.version())
        return apply_form_operations(
            connection,
            self._tables.catalogue,
            target.form,
            list(zip(executions, plans, strict=True)),
            now_utc=now,
            today=asks[0].today,
        )

    def _ask_again(self, target: Target, execution: Execution, now: datetime) -> Ask:
        payload = execution.payload
        if _is_anew(execution):
            payload = _input_only(target.form, payload)
        item = PrepareItem(record=execution.target_bill_id, payload=payload, source_ref=execution.source_ref)
        seen = (execution.pins or {}) if execution.prepared else None
        return self._ask(
            execution.actor, target, item, execution.allow_duplicate, seen=seen, lock=True, now=now
        )

    def restore_payload(self, prepared: Prepared) -> dict[str, Any]:
        """What a caller may send again: without computed and system-set fields."""
        route = prepared.route
        target = self._router.find(route.form_id, route.op_type, route.command_type)
        return dict(prepared.payload) if target.command else _input_only(target.form, prepared.payload)

    def _execute_commands(
        self,
        connection: Connection,
        grants: Grants,
        command: Registered,
        executions: Iterable[Execution],
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        waiting = Waiting(command)
        for execution in executions:
            if not command.together:
                outcomes += waiting.execute()
            context, plan = self._planned(connection, grants, command, execution)
            if not waiting.takes(plan):
                outcomes += waiting.execute()
                context, plan = self._planned(connection, grants, command, execution)
            waiting.add(context, plan)
        return outcomes + waiting.execute()

    def _planned(
        self, connection: Connection, grants: Grants, command: Registered, execution: Execution
    ) -> tuple[CommandContext, CommandPlan]:
        target = self._permitted_route(connection, grants, execution.actor, execution.route)
        context = self._context(
            connection,
            execution.actor,
            target,
            command,
            execution.target_bill_id,
            execution.allow_duplicate,
            lock=True,
            op_id=execution.op_id,
        )
        plan = plan_command(command, context, execution.payload)
        if execution.prepared:
            require_same_pins(plan, execution.pins or {}, execution.target_bill_id)
        _require_version(execution, version_of(plan.pins))
        return context, plan

    def _permitted_route(self, connection: Connection, grants: Grants, actor: Actor, route: Route) -> Target:
        return self._permitted(connection, grants, actor, *_names(route))

    def _permitted(
        self,
        connection: Connection,
        grants: Grants,
        actor: Actor,
        form_id: str,
        op_type: str,
        command_type: str,
    ) -> Target:
        target = self._router.find(form_id, op_type, command_type)
        grants.require(connection, actor, target.form.id, target.verb)
        return target

    def _ask(
        self,
        actor: Actor,
        target: Target,
        item: PrepareItem,
        allow_duplicate: bool,
        *,
        seen: Mapping[str, Any] | None = None,
        lock: bool = False,
        now: datetime | None = None,
    ) -> Ask:
        now = now or self._clock()
        return Ask(
            actor=actor,
            form=target.form,
            op=target.own_op,
            record=item.record,
            payload=item.payload,
            source_ref=item.source_ref,
            now=now,
            today=now.astimezone(self._zone).date(),
            allow_duplicate=allow_duplicate,
            seen=seen,
            lock=lock,
        )

    def _context(
        self,
        connection: Connection,
        actor: Actor,
        target: Target,
        command: Registered,
        record: str,
        allow_duplicate: bool,
        *,
        lock: bool = False,
        op_id: str = "",
    ) -> CommandContext:
        now = self._clock()
        return CommandContext(
            connection=connection,
            actor=actor,
            tables=self._tables,
            form=target.form,
            policy=command.policy,
            record=record,
            lock=lock,
            now=now,
            today=now.astimezone(self._zone).date(),
            op_id=op_id,
            allow_duplicate=allow_duplicate,
        )

    def _shown(self, connection: Connection, actor: Actor, target: Target, worked: WorkedOut) -> Prepared:
        form, root = target.form, worked.root
        texts = Texts(connection, self._tables, actor.tenant, actor.locale)
        texts.want_nodes(root.walk())
        twin = (
            read_record(connection, self._tables, actor.tenant, form, worked.duplicate)
            if worked.duplicate
            else None
        )
        if twin:
            texts.want_title(form, twin.values)
        source = None
        if worked.source_ref:
            source = (self._tables.form(worked.source_ref["formId"]), worked.source_ref["record"])
            texts.want_record(source[0].id, source[1])
        texts.load()
        warnings = []
        if twin:
            title = texts.title(form, twin.key, twin.values)
            message = (
                f"可能与已有单据“{title}”重复" if actor.locale == "zh" else f'This may duplicate "{title}"'
            )
            warnings.append(PreviewWarning(code=ErrorCode.POSSIBLE_DUPLICATE.value, message=message))
        warnings += self._stock_warning(connection, actor, target, root.key)
        preview = preview_of(
            form, target.own_op, root, worked.pins, texts, warnings, read=worked.read, source=source
        )
        return Prepared(
            route=target.route(root.values().__getitem__),
            payload=worked.payload,
            target_bill_id=worked.target_bill_id,
            source_ref=worked.source_ref,
            pins=worked.pins.values(),
            target_version=worked.pins.version(),
            preview=preview,
        )

    def _stock_warning(
        self, connection: Connection, actor: Actor, target: Target, key: str
    ) -> list[PreviewWarning]:
        """What the stock rule would say now. A warning, since stock may come or go until the operation is executed."""
        now = self._clock()
        ctx = WriteContext(connection, self._tables, actor, now, now.astimezone(self._zone).date())
        try:
            moves = stock_moves(ctx, target.form, target.own_op, key)
            if moves:
                look_at_stock(ctx, target.form, moves)
        except Refused as refusal:
            message = refusal.message(actor.locale)
            return [PreviewWarning(code=refusal.code.value, message=message)]
        return []


def _names(route: Route) -> tuple[str, str, str]:
    return route.form_id, route.op_type, route.command_type


def _is_anew(execution: Execution) -> bool:
    """Confirmed here, but without a seal that could be verified: only what can be put in is taken from it."""
    return not execution.prepared and execution.pins is not None


def _require_version(execution: Execution, version: str) -> None:
    """A row that states which version it was made for is executed on that version only."""
    if execution.target_version and execution.target_version != version:
        raise Refused(ErrorCode.VERSION_CONFLICT, {"record": execution.target_bill_id})


def _refers(of: Form | Child, payload: Mapping[str, Any]) -> bool:
    """True if the normalized ``payload`` names a record of another form, in whatever line."""
    if any(field.reference and payload.get(field.name) for field in of.fields):
        return True
    return any(_refers(child, line) for child in of.children for line in payload.get(child.name, ()))


def _as_shown(form: Form, payload: Mapping[str, Any]) -> dict[str, Any]:
    """What was put in and what was worked out from it; not what the moment fills in (now, today, maker)."""
    return _input_only(form, payload, computed=True)


def _input_only(of: Form | Child, payload: Mapping[str, Any], *, computed: bool = False) -> dict[str, Any]:
    fields = {field.name: field for field in of.fields}
    children = {child.name: child for child in of.children}
    kept: dict[str, Any] = {}
    for name, value in payload.items():
        if name in children and isinstance(value, list):
            below = children[name]
            kept[name] = [
                _input_only(below, v, computed=computed) if isinstance(v, Mapping) else v for v in value
            ]
        elif name not in fields or fields[name].accepts_input or (computed and fields[name].computed):
            kept[name] = value  # names that are no field are a line's id and remove
    return kept
