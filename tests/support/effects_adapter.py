"""A small real ERP for tests of the queue engine: ``OPSTAGE_ERP_ADAPTER=tests.support.effects_adapter:build_adapter``.

Each execution appends to the table ``effects`` inside the ERP transaction: no unique key there, so that a double
execution shows. What else happens is said by the payload: ``{"steps": [{"do": "sleep", "ms": 200}, …], "note": "…"}``;
see ``Steps``. Without a step ``write`` the effect is written last.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    insert,
    text,
    update,
)

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import PrepareItem, Preview
from staging.domain.errors import FieldProblem, Refused, Transient, invalid
from staging.domain.identity import Actor, Tenant
from staging.domain.ports import ErpTransaction, Execution, LedgerEntry, LedgerRow, Outcome, Prepared, Route
from staging.settings import Settings
from staging.storage.dialect import IdString, UtcDateTime, db_now, is_mysql
from staging.storage.engine import open_connection
from tests.support.waiting import wait_until
from workers.erp.ledger import SqlLedger

FORM, APPROVED_FORM, CLOSED_FORM = "effects", "effects_approved", "effects_closed"
NOBODY = "u-nobody"  # the user without any grant
_KEYS = "effects.keys"

effects_metadata = MetaData()
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
effects = Table(
    "effects",
    effects_metadata,
    Column("iId", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("sOpId", IdString(64), nullable=False),
    Column("sKey", IdString(128), nullable=False),
    Column("sNote", Text, nullable=False),
    Column("iPid", Integer, nullable=False),
    Column("tAt", UtcDateTime, nullable=False),
    **_MYSQL,
)
# Records of this ERP, to be locked by steps and by tests.
effects_row = Table(
    "effects_row",
    effects_metadata,
    Column("sName", IdString(64), primary_key=True),
    Column("iValue", Integer, nullable=False),
    **_MYSQL,
)
ROWS = ("a", "b")


def remember_key(connection: Connection, op_id: str, key: str) -> None:
    """For ``write_effect`` on the same connection."""
    connection.info.setdefault(_KEYS, {})[op_id] = key


class RecordingLedger(SqlLedger):
    """The real ledger; it also leaves the keys on the connection, since an adapter is not told them."""

    def insert_first(
        self,
        connection: Connection,
        tenant: Tenant,
        key: str,
        op_id: str,
        command_type: str,
        payload_hash: str,
    ) -> LedgerEntry | None:
        remember_key(connection, op_id, key)
        return super().insert_first(connection, tenant, key, op_id, command_type, payload_hash)

    def insert_all(
        self, connection: Connection, tenant: Tenant, rows: Sequence[LedgerRow]
    ) -> dict[str, LedgerEntry]:
        for row in rows:
            remember_key(connection, row.op_id, row.key)
        return super().insert_all(connection, tenant, rows)


class _Transaction:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


class EffectsAdapter:
    """What the queue engine uses of ``ports.ErpAdapter``. Forms: ``effects`` (auto), ``effects_approved`` (needs
    approval), ``effects_closed`` (no policy: forbidden)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ledger = RecordingLedger()

    def route(self, form_id: str, op_type: str, command_type: str = "", payload: Any = None) -> Route:
        if isinstance(payload, dict) and payload.get("routeBug"):
            raise KeyError(payload["routeBug"])
        if form_id not in (FORM, APPROVED_FORM, CLOSED_FORM):
            raise Refused(ErrorCode.FORM_NOT_FOUND, {"form": form_id})
        if form_id == CLOSED_FORM:
            raise Refused(ErrorCode.FORBIDDEN)
        return Route(
            command_type=command_type or f"test.{form_id}.{op_type}",
            form_id=form_id,
            module_id="test",
            target_table="effects",
            op_type=op_type,
            auto_execute=True,
            requires_approval=form_id == APPROVED_FORM,
        )

    def prepare(self, actor: Actor, item: PrepareItem) -> Prepared:
        self._permit(actor)
        route = self.route(item.form_id, item.op_type, item.command_type, item.payload)
        preview = Preview(
            title="effect", form_id=FORM, form_label="effect", op_type=item.op_type, op_label=item.op_type
        )
        return Prepared(route, dict(item.payload), item.record, item.source_ref, {}, "", preview)

    def recheck(self, actor: Actor, prepared: Prepared) -> None:
        self._permit(actor)

    def may_approve(self, actor: Actor, route: Route) -> bool:
        return actor.user_id.startswith("u-boss")

    def restore_payload(self, prepared: Prepared) -> dict[str, Any]:
        return dict(prepared.payload)

    @contextmanager
    def transaction(self) -> Iterator[ErpTransaction]:
        with open_connection(self._engine) as connection:
            yield _Transaction(connection)

    def apply(self, tx: ErpTransaction, execution: Execution) -> Outcome:
        self._permit(execution.actor)
        steps = Steps(self._engine, tx.connection, execution)
        steps.run(execution.payload.get("steps", []))
        if not steps.wrote:
            steps.write({})
        return steps.outcome

    def in_sets(self, execution: Execution) -> bool:
        return False

    def apply_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> list[Outcome]:
        return [self.apply(tx, execution) for execution in executions]

    def close(self) -> None:
        self._engine.dispose()

    @staticmethod
    def _permit(actor: Actor) -> None:
        if actor.user_id == NOBODY:
            raise Refused(ErrorCode.FORBIDDEN)


class Steps:
    """Each public method is a step: ``{"do": name, …its arguments}``. Times are milliseconds, files absolute paths."""

    def __init__(self, engine: Engine, connection: Connection, execution: Execution) -> None:
        self._engine, self._connection, self._execution = engine, connection, execution
        self.wrote = False
        self.outcome = Outcome(f"bill-{execution.op_id}", {"zh": "完成", "en": "done"}, {"by": os.getpid()})

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            getattr(self, step["do"])(step)

    def write(self, step: dict[str, Any]) -> None:
        """Append the effect."""
        self.wrote = True
        write_effect(self._connection, self._execution, str(self._execution.payload.get("note", "")))

    def sleep(self, step: dict[str, Any]) -> None:
        """Be busy in Python for ``ms``."""
        time.sleep(step["ms"] / 1000)

    def sql_sleep(self, step: dict[str, Any]) -> None:
        """Be busy in the database for ``ms`` (SQLite: until a limit stops it)."""
        seconds = step["ms"] / 1000
        dialect = self._connection.dialect
        if dialect.name == "sqlite":
            endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
            self._connection.execute(text(endless)).all()
        else:
            function = "SLEEP" if is_mysql(dialect) else "pg_sleep"
            self._connection.execute(text(f"SELECT {function}(:s)"), {"s": seconds}).all()

    def lock(self, step: dict[str, Any]) -> None:
        """Change the record ``row`` ("a", "b"), waiting for whoever holds it."""
        self._connection.execute(
            update(effects_row)
            .where(effects_row.c.sName == step["row"])
            .values(iValue=effects_row.c.iValue + 1)
        )

    def hang_up(self, step: dict[str, Any]) -> None:
        """Have the server kill this transaction's connection, as an administrator or a failover would."""
        if is_mysql(self._connection.dialect):
            own, kill = "SELECT CONNECTION_ID()", "KILL {}"
        else:
            own, kill = "SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"
        number = self._connection.execute(text(own)).scalar_one()
        with self._engine.connect() as another:
            another.execute(text(kill.format(int(number))))

    def clash(self, step: dict[str, Any]) -> None:
        """Break a unique key of the ERP's own."""
        self._connection.execute(insert(effects_row).values(sName=ROWS[0], iValue=0))

    def misfit(self, step: dict[str, Any]) -> None:
        """Bind a value that its column cannot hold."""
        self._connection.execute(update(effects).values(tAt=datetime(2026, 11, 30)))  # noqa: DTZ001

    def refuse(self, step: dict[str, Any]) -> None:
        """Refuse by ``code``."""
        raise Refused(ErrorCode(step["code"]), text=step.get("text"))

    def invalid(self, step: dict[str, Any]) -> None:
        """Find ``field`` not valid."""
        raise invalid([FieldProblem(step["field"], ErrorCode.FIELD_INVALID)])

    def transient(self, step: dict[str, Any]) -> None:
        raise Transient(ErrorCode.UNAVAILABLE, {"what": "effects"})

    def bug(self, step: dict[str, Any]) -> None:
        """Fail as only a bug does; ``text`` must never reach a person."""
        raise RuntimeError(step.get("text", "a bug"))

    def exit(self, step: dict[str, Any]) -> None:
        """What a cold shutdown raises, at an unlucky place."""
        raise SystemExit(step.get("status", 1))

    def signal(self, step: dict[str, Any]) -> None:
        """Send ``name`` (SIGKILL, SIGSTOP …) to this very process."""
        os.kill(os.getpid(), signal.Signals[step["name"]])

    def result(self, step: dict[str, Any]) -> None:
        """Succeed with ``billId`` and ``message``, both percent-encoded (a payload may not hold every character)."""
        message = unquote(step["message"])
        self.outcome = Outcome(unquote(step["billId"]), {"zh": message, "en": message})

    def touch(self, step: dict[str, Any]) -> None:
        """Tell the test that this step was reached."""
        Path(step["file"]).touch()

    def append(self, step: dict[str, Any]) -> None:
        """One byte more in ``file``: how often execution came here, whatever was rolled back."""
        with Path(step["file"]).open("ab") as file:
            file.write(b".")

    def wait(self, step: dict[str, Any]) -> None:
        """Go on once ``file`` exists."""
        wait_until(Path(step["file"]).exists, step.get("ms", 10_000) / 1000, f"{step['file']} appears")

    def once(self, step: dict[str, Any]) -> None:
        """``steps`` for whoever creates ``file``, nothing for those after."""
        try:
            Path(step["file"]).touch(exist_ok=False)
        except FileExistsError:
            return
        self.run(step["steps"])


def write_effect(connection: Connection, execution: Execution, note: str = "") -> None:
    """Append one row, in the operation's own transaction; its ledger has to be a ``RecordingLedger``."""
    connection.execute(
        insert(effects).values(
            sOpId=execution.op_id,
            sKey=connection.info[_KEYS][execution.op_id],
            sNote=note,
            iPid=os.getpid(),
            tAt=db_now(),
        )
    )


def create_effects(engine: Engine) -> None:
    """The tables and records of this ERP."""
    effects_metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(effects_row), [{"sName": name, "iValue": 0} for name in ROWS])


def build_adapter(settings: Settings, engine: Engine) -> EffectsAdapter:
    """What ``OPSTAGE_ERP_ADAPTER`` names."""
    return EffectsAdapter(engine)
