"""What a person confirmed, as rows: the operations, their first events, and what the audit log says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, Float, Row, Select, bindparam, exists, insert, select, true
from sqlalchemy.exc import IntegrityError

from staging.domain.identity import Actor
from staging.domain.lifecycle import Verb, transition
from staging.domain.operation import NewOperation, Operation, Told
from staging.storage import audit, journal
from staging.storage.compiled import compiled
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.dialect import db_now, db_now_plus
from staging.storage.operations import KeyTaken
from staging.storage.tables import op_dependency, op_queue

q = op_queue.c


def insert_confirmed(
    connection: Connection,
    new: Sequence[NewOperation],
    actor: Actor,
    said: Sequence[audit.AuditEntry] = (),
) -> tuple[list[Operation], list[Told]]:
    """Insert what a person confirmed, its dependencies, first events and, last, what is ``said`` of it in the log.

    Returns the operations as they are now, in the order given, and what is to be told. Raises ``KeyTaken``: roll back
    and read.
    """
    for operation in new:
        transition(Verb.SUBMIT, None, operation.code)
    if connection.dialect.name == "postgresql" and len(new) == len(said) == 1 and not new[0].depends_on:
        return _insert_at_once(connection, new[0], actor, said[0])
    rows = [_insert(connection, operation, step) for step, operation in enumerate(new, start=1)]
    links = [{"sOpId": o.id, "sDependsOnId": other} for o in new for other in sorted(set(o.depends_on))]
    if links:
        connection.execute(insert(op_dependency), links)
    inserted = [
        _operation(o, step, row) for step, (o, row) in enumerate(zip(new, rows, strict=True), start=1)
    ]
    told = journal.record_as_read(connection, inserted, Verb.SUBMIT, rows[-1].now, actor=actor)
    audit.append(connection, said)
    return inserted, told


# What the database decides, or may keep otherwise than it was given; everything else of a new row is known.
_DECIDED = (q.tCreateDate, q.tConfirmDate, q.tExpireAt, q.tNotBefore, q.iPriority, q.iAttempt)
_NOW = db_now().label("now")
_SECONDS = db_now_plus(bindparam("expires_in_s", type_=Float))
_INSERT = insert(op_queue).values(tConfirmDate=db_now())
_INSERT_EXPIRING = _INSERT.values(tExpireAt=_SECONDS)
_RETURNING = {s: s.returning(*_DECIDED, _NOW) for s in (_INSERT, _INSERT_EXPIRING)}
_READ = select(*_DECIDED, _NOW).where(q.sId == bindparam("id"))


def _insert(connection: Connection, new: NewOperation, step: int) -> Row[Any]:
    """Insert the row of one operation; gives what the database decided of it, and ``now``."""
    row, statement = _new_row(new, step), _INSERT
    if new.expires_in_s is not None:
        row["expires_in_s"], statement = new.expires_in_s, _INSERT_EXPIRING
    with _unless_taken(new):
        if connection.dialect.insert_returning:
            return connection.execute(_RETURNING[statement], row).one()
        connection.execute(statement, row)
    return connection.execute(_READ, {"id": new.id}).one()


@contextmanager
def _unless_taken(new: NewOperation) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        if classify_db_error(error) is DbFailure.UNIQUE:
            raise KeyTaken(new.idempotency_key) from error
        raise


# --- PostgreSQL: the row, its event and the head of the audit chain in one round trip ---------------------------------


@cache
def _at_once(names: tuple[str, ...]) -> Select[Any]:
    """Inserts a row of which the columns ``names`` are given, as parameters ``new_<name>``."""
    given = {name: bindparam(f"new_{name}", type_=q[name].type) for name in names}
    row = (
        insert(op_queue)
        .values(given | {"tConfirmDate": db_now(), "tExpireAt": _SECONDS})
        .returning(q.sId, q.iSeq, q.sStatus, q.iStatusCode, *_DECIDED, _NOW)
        .cte("inserted")
    )
    event = journal.recording(row).cte("event")
    # From ``inserted``: whoever waits for the key holds no chain yet.
    head, known = audit.moving_on(exists(select(row.c.sId)))
    decided = [row.c[column.name] for column in _DECIDED]
    return select(*decided, row.c.now, *known).select_from(row.outerjoin(head, true())).add_cte(event)


def _insert_at_once(
    connection: Connection, new: NewOperation, actor: Actor, said: audit.AuditEntry
) -> tuple[list[Operation], list[Told]]:
    row, chain = _new_row(new, 1), audit.chain_of(said.actor.tenant)
    values = {f"new_{name}": value for name, value in row.items()} | {"expires_in_s": new.expires_in_s}
    values |= journal.parameters(Verb.SUBMIT, actor=actor) | {"chain": chain, "count": 1}
    with _unless_taken(new):
        decided = compiled(_at_once(tuple(row)), connection.dialect).run(connection, values)
    if head := audit.head_of(decided):
        audit.append_to(connection, chain, head, [said])
    else:  # the chain's first entry
        audit.append(connection, [said])
    operation = _operation(new, 1, decided)
    return [operation], [journal.told(operation, decided.now)]


# --- the row ----------------------------------------------------------------------------------------------------------


def _new_row(o: NewOperation, step: int) -> dict[str, Any]:
    return {
        "sId": o.id,
        "sBrandsId": o.tenant.brands_id,
        "sSubsidiaryId": o.tenant.subsidiary_id,
        "sMakePerson": o.maker,
        "sOpType": o.op_type,
        "sCommandType": o.command_type,
        "sTargetFormId": o.form_id,
        "sTargetModuleId": o.module_id,
        "sTargetTable": o.target_table,
        "sTargetBillId": o.target_bill_id,
        "sPayload": o.payload_json,
        "sSourceRef": o.source_ref_json,
        "bAutoExecute": int(o.auto_execute),
        "sStatus": o.code.status.value,
        "iStatusCode": int(o.code),
        "tNotBefore": o.not_before,
        "sIdempotencyKey": o.idempotency_key,
        "sPayloadHash": o.payload_hash,
        "sTargetVersion": o.target_version,
        "sConversationId": o.conversation_id,
        "sTraceId": o.trace_id,
        "sFlowId": o.preparation_id,
        "iFlowStep": step,
        "iMaxAttempts": o.max_attempts,
        "iSeq": 1,
        "sPreparationId": o.preparation_id,
        "sConfirmPerson": o.confirmed_by,
        "bNeedsApproval": int(o.needs_approval),
        "bAllowDuplicate": int(o.allow_duplicate),
        "jPins": o.pins_json,
        "jPreview": o.preview_json,
        "sSnapshotHash": o.snapshot_hash,
        "sSeal": o.seal,
        "sLocale": o.locale,
    }


def _operation(o: NewOperation, step: int, decided: Row[Any]) -> Operation:
    """The operation as it is in the queue now, without reading it: ``_new_row`` and what the database ``decided``."""
    return Operation(
        id=o.id,
        tenant=o.tenant,
        maker=o.maker,
        op_type=o.op_type,
        command_type=o.command_type,
        form_id=o.form_id,
        module_id=o.module_id,
        target_table=o.target_table,
        target_bill_id=o.target_bill_id,
        payload_json=o.payload_json,
        source_ref_json=o.source_ref_json,
        auto_execute=o.auto_execute,
        status=o.code.status.value,
        code=int(o.code),
        seq=1,
        result_bill_id=None,
        result_message=None,
        error_message=None,
        error_code="",
        error_detail_json=None,
        created_at=decided.tCreateDate,
        confirmed_at=decided.tConfirmDate,
        executed_at=None,
        expires_at=decided.tExpireAt,
        not_before=decided.tNotBefore,
        idempotency_key=o.idempotency_key,
        payload_hash=o.payload_hash,
        target_version=o.target_version,
        conversation_id=o.conversation_id,
        trace_id=o.trace_id,
        flow_step=step,
        priority=decided.iPriority or 0,
        attempt=decided.iAttempt or 0,
        max_attempts=o.max_attempts,
        lease_token=None,
        lease_until=None,
        preparation_id=o.preparation_id,
        confirmed_by=o.confirmed_by,
        approved_by=None,
        needs_approval=o.needs_approval,
        allow_duplicate=o.allow_duplicate,
        pins_json=o.pins_json,
        preview_json=o.preview_json,
        snapshot_hash=o.snapshot_hash,
        seal=o.seal,
        locale=o.locale,
    )
