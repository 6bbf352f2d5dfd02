"""The queue's tables as SQLAlchemy sees them (CONTRACT section 1). Migrations are proven equal to this by a test.

Payload columns are text on every database: what a row may hold is decided by ``domain.intake``, the same way
everywhere, and a JSON type of PostgreSQL or MariaDB would each refuse something else. An adopted json/jsonb
column works as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    column,
    text,
)
from sqlalchemy.dialects import mysql

from staging.storage.dialect import IdString, JsonText, UtcDateTime, db_now

metadata = MetaData()
LongText = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}

op_queue = Table(
    "ai_op_queue",
    metadata,
    Column("sId", IdString(64), nullable=False),
    Column("sBrandsId", IdString(64), nullable=False),
    Column("sSubsidiaryId", IdString(64), nullable=False),
    Column("sMakePerson", IdString(64), nullable=False),
    Column("sOpType", String(50), nullable=False),
    Column("sCommandType", String(150), nullable=False, server_default=""),
    Column("sTargetFormId", String(100), nullable=False),
    Column("sTargetModuleId", String(100), nullable=False, server_default=""),
    Column("sTargetTable", String(100), nullable=False, server_default=""),
    Column("sTargetBillId", String(200), nullable=False, server_default=""),
    Column("sPayload", JsonText, nullable=False),
    Column("sSourceRef", JsonText),
    Column("bAutoExecute", SmallInteger, nullable=False, server_default="0"),
    Column("sStatus", String(20), nullable=False),
    Column("iStatusCode", Integer),
    Column("sResultBillId", String(200)),
    Column("sResultMsg", LongText),
    Column("sErrorMsg", LongText),
    Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    Column("tConfirmDate", UtcDateTime),
    Column("tExecutedDate", UtcDateTime),
    Column("tExpireAt", UtcDateTime),
    Column("sIdempotencyKey", IdString(128)),
    Column("sPayloadHash", String(80), nullable=False, server_default=""),
    Column("sTargetVersion", String(80), nullable=False, server_default=""),
    Column("sConversationId", String(100), nullable=False, server_default=""),
    Column("sTraceId", String(100), nullable=False, server_default=""),
    Column("sFlowId", String(100), nullable=False, server_default=""),
    Column("iFlowStep", Integer, nullable=False, server_default="0"),
    Column("tNotBefore", UtcDateTime),
    Column("iPriority", Integer, nullable=False, server_default="0"),
    Column("iAttempt", Integer, nullable=False, server_default="0"),
    Column("iMaxAttempts", Integer, nullable=False, server_default="5"),
    Column("sLeaseToken", IdString(64)),
    Column("tLeaseUntil", UtcDateTime),
    Column("iSeq", BigInteger, nullable=False, server_default="0"),
    # Ours beyond the contract: what confirm fixed, and how its rows belong together.
    Column("sPreparationId", IdString(64)),
    Column("sConfirmPerson", IdString(64)),
    Column("sApprovePerson", IdString(64)),
    Column("bNeedsApproval", SmallInteger, nullable=False, server_default="0"),
    Column("bAllowDuplicate", SmallInteger, nullable=False, server_default="0"),
    Column("jPins", JsonText),
    Column("jPreview", JsonText),
    Column("sSnapshotHash", String(80), nullable=False, server_default=""),
    Column("sSeal", String(80), nullable=False, server_default=""),
    Column("sErrorCode", String(60), nullable=False, server_default=""),
    Column("jErrorDetail", JsonText),
    Column("sLocale", String(10), nullable=False, server_default="zh"),
    PrimaryKeyConstraint("sId", name="pk_ai_op_queue"),
    UniqueConstraint("sBrandsId", "sSubsidiaryId", "sIdempotencyKey", name="uq_ai_op_queue_idempotency"),
    **_MYSQL,
)

op_event = Table(
    "ai_op_event",
    metadata,
    Column("sOpId", IdString(64), nullable=False),
    Column("iSeq", BigInteger, nullable=False),
    Column("sVerb", String(20), nullable=False),
    Column("sStatus", String(20), nullable=False),
    Column("iStatusCode", Integer, nullable=False),
    Column("iAttempt", Integer, nullable=False, server_default="0"),
    Column("sMessage", LongText),
    Column("sActor", IdString(128), nullable=False, server_default=""),
    Column("sActorKind", String(20), nullable=False, server_default="system"),
    Column("tCreateDate", UtcDateTime, nullable=False, server_default=db_now()),
    PrimaryKeyConstraint("sOpId", "iSeq", name="pk_ai_op_event"),
    CheckConstraint(column("iSeq") >= 1, name="ck_ai_op_event_seq_from_one"),
    Index(
        "ix_ai_op_event_time", "tCreateDate", "sOpId", "iSeq"
    ),  # listeners read what happened since a moment
    **_MYSQL,
)

audit_log = Table(
    "ai_audit_log",
    metadata,
    Column("sChain", IdString(140), nullable=False),
    Column("iSeq", BigInteger, nullable=False),
    Column("sBrandsId", IdString(64), nullable=False),
    Column("sSubsidiaryId", IdString(64), nullable=False),
    Column("sActor", IdString(128), nullable=False),
    Column("sActorKind", String(20), nullable=False),
    Column("sAction", String(50), nullable=False),
    Column("sOpId", IdString(64), nullable=False, server_default=""),
    Column("jDetail", JsonText, nullable=False),
    Column("tCreateDate", UtcDateTime, nullable=False),
    Column("sPrevHash", String(80), nullable=False),
    Column("sHash", String(80), nullable=False),
    PrimaryKeyConstraint("sChain", "iSeq", name="pk_ai_audit_log"),
    Index("ix_ai_audit_log_op", "sOpId"),
    **_MYSQL,
)

audit_head = Table(
    "ai_audit_head",
    metadata,
    Column("sChain", IdString(140), nullable=False),
    Column("iSeq", BigInteger, nullable=False),
    Column("sHash", String(80), nullable=False),
    PrimaryKeyConstraint("sChain", name="pk_ai_audit_head"),
    **_MYSQL,
)

op_dependency = Table(
    "ai_op_dependency",
    metadata,
    Column("sOpId", IdString(64), nullable=False),
    Column("sDependsOnId", IdString(64), nullable=False),
    PrimaryKeyConstraint("sOpId", "sDependsOnId", name="pk_ai_op_dependency"),
    Index("ix_ai_op_dependency_on", "sDependsOnId"),
    **_MYSQL,
)

# Ended operations of long ago, moved here as they were. All but the id may be NULL, as in an adopted table.
op_queue_archive = Table(
    "ai_op_queue_archive",
    metadata,
    Column("sId", IdString(64), nullable=False),
    *(Column(kept.name, kept.type) for kept in op_queue.columns if kept.name != "sId"),
    Column("jDependsOn", JsonText),  # ids of the operations it waited for
    Column("jExtra", JsonText),  # columns of an adopted table that are not ours: name → value
    Column("tArchiveDate", UtcDateTime, nullable=False, server_default=db_now()),
    PrimaryKeyConstraint("sId", name="pk_ai_op_queue_archive"),
    Index("ix_ai_op_queue_archive_preparation", "sPreparationId"),
    **_MYSQL,
)

op_event_archive = Table(
    "ai_op_event_archive",
    metadata,
    *(Column(kept.name, kept.type, nullable=kept.nullable) for kept in op_event.columns),
    PrimaryKeyConstraint("sOpId", "iSeq", name="pk_ai_op_event_archive"),
    **_MYSQL,
)


def _only(*dialects: str) -> Callable[..., bool]:
    return lambda ddl, target, bind, **kw: kw["dialect"].name in dialects


# Partial where the database can (PostgreSQL, SQLite): their size follows the backlog, not the history. Predicates are
# literal so that the planner can match them; queries in operations.py spell the codes out the same way.
_c = op_queue.c
_PARTIAL, _MYSQL_FAMILY = _only("postgresql", "sqlite"), _only("mysql", "mariadb")


def _partial(name: str, *columns: Any, where: str) -> None:
    predicate = text(where)
    Index(name, *columns, postgresql_where=predicate, sqlite_where=predicate).ddl_if(callable_=_PARTIAL)


# Of due rows there are two, whoever's and by turns. Only the first says the status, so that a question that does not is
# answered from the second whatever statistics say (due.py).
_partial(
    "ix_ai_op_queue_next",
    _c.iPriority.desc(),
    _c.tCreateDate,
    _c.sId,
    where='"iStatusCode" = 100 AND "sStatus" = \'pending\'',
)
_TURN = (_c.sBrandsId, _c.sSubsidiaryId, _c.iPriority, _c.tCreateDate, _c.sId)  # tenants take turns (due.py)
_partial("ix_ai_op_queue_turn", *_TURN, where='"iStatusCode" = 100')
_partial("ix_ai_op_queue_lease", _c.tLeaseUntil, where='"iStatusCode" IN (101, 102)')
_partial("ix_ai_op_queue_waiting", _c.tNotBefore, where='"iStatusCode" = 105')
_partial("ix_ai_op_queue_expiry", _c.tExpireAt, where='"sStatus" = \'pending\' AND "tExpireAt" IS NOT NULL')
# What is open in a tenant, by code and age: approvals, operators' lists, gauges.
_partial(
    "ix_ai_op_queue_open",
    _c.sBrandsId,
    _c.sSubsidiaryId,
    _c.iStatusCode,
    _c.tCreateDate,
    where="\"sStatus\" = 'pending'",
)
Index("ix_ai_op_queue_due_my", _c.iStatusCode, _c.tCreateDate, _c.sId).ddl_if(callable_=_MYSQL_FAMILY)
Index("ix_ai_op_queue_turn_my", _c.iStatusCode, *_TURN).ddl_if(callable_=_MYSQL_FAMILY)
Index("ix_ai_op_queue_lease_my", _c.iStatusCode, _c.tLeaseUntil).ddl_if(callable_=_MYSQL_FAMILY)
Index("ix_ai_op_queue_expiry_my", _c.sStatus, _c.tExpireAt).ddl_if(callable_=_MYSQL_FAMILY)
Index("ix_ai_op_queue_maker", _c.sBrandsId, _c.sSubsidiaryId, _c.sMakePerson, _c.sStatus, _c.tCreateDate)
Index("ix_ai_op_queue_tenant", _c.sBrandsId, _c.sSubsidiaryId, _c.tCreateDate)
Index("ix_ai_op_queue_preparation", _c.sPreparationId)
