"""A small ERP behind ``shop.yaml``, for tests of preparing: two tenants, three users, a few records of each form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Engine,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    text,
    update,
)
from sqlalchemy.dialects import mysql

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue
from staging.contracts.preparation import FieldChange, PrepareItem
from staging.domain.errors import FieldProblem, OpstageError
from staging.domain.identity import Actor, Tenant, new_id
from staging.domain.intake import dump_json, parse_json
from staging.domain.ports import Execution, Outcome, Prepared
from staging.storage.dialect import ExactDecimal, IdString, UtcDateTime
from workers.erp.command import CommandContext, CommandPlan
from workers.erp.forms import load_catalogue
from workers.erp.handlers import update_record, writing
from workers.erp.sql.adapter import SqlAdapter
from workers.erp.sql.records import find_record
from workers.erp.tables import erp_metadata

TENANT, OTHER = Tenant("b1", "s1"), Tenant("b2", "s1")
BOSS, CLERK, STRANGER = Actor(TENANT, "boss"), Actor(TENANT, "clerk"), Actor(OTHER, "boss")
NOW = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)  # in the tenant's zone (UTC+8) it is the 1st of December
ZONE = timezone(timedelta(hours=8))

schema = MetaData()


def _table(name: str, *columns: Column[Any], line: bool = False) -> Table:
    tenant = [] if line else [_id("sBrandsId"), _id("sSubsidiaryId")]
    parent: list[Column[Any]] = [_id("sParentId"), Column("iOrder", Integer)] if line else []
    return Table(name, schema, Column("sId", IdString(64), primary_key=True), *tenant, *parent, *columns)


def _id(name: str) -> Column[Any]:
    return Column(name, IdString(64))


def _words(*names: str) -> list[Column[Any]]:
    return [Column(name, String(100)) for name in names]


def _amount(name: str, scale: int) -> Column[Any]:
    return Column(name, ExactDecimal(18, scale), nullable=False, server_default=f"{0:.{scale}f}")


def _state(name: str, word: str) -> list[Column[Any]]:
    # What ERPs keep yes and no in differs; here it is BOOLEAN on PostgreSQL and BIT(1) on the MySQL family.
    flag = SmallInteger().with_variant(Boolean(), "postgresql").with_variant(mysql.BIT(1), "mysql", "mariadb")
    return [Column(f"b{name}", flag), _id(f"s{word}Person"), Column(f"t{word}Date", UtcDateTime)]


def _states() -> list[Column[Any]]:
    return [*_state("Check", "Check"), *_state("Invalid", "Invalid")]


grant = Table(
    "g_grant",
    schema,
    *[Column(n, IdString(64)) for n in ("sBrandsId", "sSubsidiaryId", "sUserId", "sFormId", "sOpType")],
)
region = _table("g_region", *_words("sName", "sManager"))
customer = _table(
    "g_customer", *_words("sNo", "sName", "sAddress"), _id("sRegionId"), *_state("Invalid", "Invalid")
)
product = _table("g_product", *_words("sName"), _amount("dCost", 4), *_state("Invalid", "Invalid"))
quote = _table(
    "g_quote",
    *_words("sBillNo", "sTitle", "sAddress", "sManager", "sKind", "sSalesman"),
    _id("sCustomerId"),
    _id("sRegionId"),
    Column("iLevel", Integer),
    Column("bUrgent", SmallInteger),
    Column("tQuoteDate", Date),
    Column("tSentAt", UtcDateTime),
    Column("iDays", Integer),
    Column("dTaxRate", ExactDecimal(6, 4)),
    _amount("dTotal", 2),
    _amount("dGross", 2),
    Column("sMemo", Text),
    Column("sUnrelated", String(50)),
    _id("sMakePerson"),
    Column("tCreateDate", UtcDateTime),
    *_states(),
)
part = _table(
    "g_part",
    *_words("sName", "sNote"),
    _id("sProductId"),
    _amount("dQuantity", 3),
    _amount("dPrice", 4),
    _amount("dAmount", 2),
    line=True,
)
tier = _table("g_tier", _amount("dQuantity", 3), _amount("dPrice", 4), _amount("dAmount", 2), line=True)
request = _table("g_request", *_words("sBillNo", "sDepartment"), *_states())
request_line = _table(
    "g_request_line", _id("sProductId"), _amount("dQuantity", 3), _amount("dOrdered", 3), line=True
)
order = _table("g_order", *_words("sBillNo", "sDepartment", "sMemo"), _id("sRequestId"), *_states())
order_line = _table(
    "g_order_line",
    _id("sProductId"),
    _amount("dQuantity", 3),
    _amount("dPrice", 4),
    _id("sSourceLineId"),
    line=True,
)


class Rename:
    """A command for tests: gives a quotation another title, pinned to the old one."""

    class Input(BaseModel):
        model_config = ConfigDict(extra="forbid")
        title: str

    def prepare(self, context: CommandContext, data: Input) -> CommandPlan:
        tenant = context.actor.tenant
        found = find_record(
            context.connection, context.tables, tenant, context.form, context.record, lock=context.lock
        )
        old = found.values["title"]
        change = FieldChange(field="title", label="标题", type="string", old=old, new=data.title)
        return CommandPlan({"title": data.title}, found.key, old, {"title": old}, [change])

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        update_record(writing(context), context.form, plan.target_bill_id, plan.payload)
        return Outcome(plan.target_bill_id, {"zh": "已改", "en": "renamed"})


def load() -> Catalogue:
    return load_catalogue(Path(__file__).with_name("shop.yaml"))


class Shop:
    """The ERP in a database, and the adapter on it. ``prepare`` proves each time that nothing was written."""

    def __init__(self, engine: Engine, catalogue: Catalogue) -> None:
        self.engine = engine
        self.adapter = SqlAdapter(catalogue, engine, time_zone=ZONE, clock=lambda: NOW)
        schema.create_all(engine)
        erp_metadata.create_all(engine)

    def reset(self) -> None:
        """Empty all tables and fill them with the records of ``_ROWS``."""
        with self.engine.begin() as connection:
            for table in (*schema.sorted_tables, *erp_metadata.sorted_tables):
                connection.execute(table.delete())
            for table, rows in _ROWS.items():
                for row in rows:
                    owner = {} if "sBrandsId" not in table.c else {"sBrandsId": "b1", "sSubsidiaryId": "s1"}
                    connection.execute(table.insert(), {**owner, **row})

    def prepare(self, form: str, op: str, *, actor: Actor = BOSS, **what: Any) -> Prepared:
        before = self.snapshot()
        try:
            return self.adapter.prepare(actor, PrepareItem(form_id=form, op_type=op, **what))
        finally:
            assert self.snapshot() == before, "preparing has written something"

    def refusal(self, form: str, op: str, **what: Any) -> OpstageError:
        """The error of a prepare that must be refused."""
        try:
            self.prepare(form, op, **what)
        except OpstageError as error:
            return error
        raise AssertionError(f"{form}.{op} was not refused")

    def problems(self, form: str, op: str, **what: Any) -> dict[str, FieldProblem]:
        """Every bad field of a refused prepare, by path."""
        return {problem.field: problem for problem in self.refusal(form, op, **what).details}

    def codes(self, form: str, op: str, **what: Any) -> dict[str, ErrorCode]:
        return {path: problem.code for path, problem in self.problems(form, op, **what).items()}

    def execution(self, prepared: Prepared, actor: Actor = BOSS, **more: Any) -> Execution:
        """As the executor makes it of the row: payload, pins and source went through JSON text."""

        def through_text(value: Any) -> Any:
            return None if value is None else parse_json(dump_json(value), max_bytes=100_000, max_depth=20)

        values = {
            "op_id": new_id(),
            "actor": actor,
            "route": prepared.route,
            "target_bill_id": prepared.target_bill_id,
            "payload": through_text(prepared.payload),
            "source_ref": through_text(prepared.source_ref),
            "pins": through_text(prepared.pins),
            "target_version": prepared.target_version,
            "prepared": True,
            **more,
        }
        return Execution(**values)

    def foreign(self, form: str, op: str, *, actor: Actor = BOSS, **what: Any) -> Execution:
        """A row that somebody else's SQL inserted."""
        values = {"payload": {}, "source_ref": None, "target_bill_id": "", "target_version": "", **what}
        return Execution(new_id(), actor, self.adapter.route(form, op), pins=None, prepared=False, **values)

    def execute(self, execution: Execution) -> Outcome:
        with self.adapter.transaction() as tx:
            outcome = self.adapter.apply(tx, execution)
            tx.commit()
        return outcome

    def execute_all(self, *executions: Execution) -> Sequence[Outcome]:
        """In one transaction, as a group does it."""
        with self.adapter.transaction() as tx:
            outcomes = self.adapter.apply_all(tx, executions)
            tx.commit()
        return outcomes

    def run(self, form: str, op: str, **what: Any) -> Outcome:
        """Prepare and execute."""
        prepared = self.prepare(form, op, **what)
        self.adapter.recheck(BOSS, prepared)
        return self.execute(self.execution(prepared, allow_duplicate=bool(what.get("allow_duplicate"))))

    def change(self, table: Table, key: str, **values: Any) -> None:
        """Somebody else changes a row."""
        with self.engine.begin() as connection:
            connection.execute(update(table).where(table.c.sId == key).values(values))

    def add(self, table: Table, tenant: Tenant | None = TENANT, **row: Any) -> None:
        owner = {"sBrandsId": tenant.brands_id, "sSubsidiaryId": tenant.subsidiary_id} if tenant else {}
        with self.engine.begin() as connection:
            connection.execute(table.insert(), {**owner, **row})

    def row(self, table: Table, key: str) -> Mapping[str, Any]:
        with self.engine.connect() as connection:
            return dict(connection.execute(table.select().where(table.c.sId == key)).mappings().one())

    def snapshot(self) -> dict[str, list[str]]:
        tables = [*schema.sorted_tables, *erp_metadata.sorted_tables]
        with self.engine.connect() as connection:
            return {
                t.name: sorted(map(str, connection.execute(text(f"SELECT * FROM {t.name}")))) for t in tables
            }


_ROWS: dict[Table, list[dict[str, Any]]] = {
    grant: [
        {"sUserId": "boss", "sFormId": "*", "sOpType": "*"},
        {"sUserId": "clerk", "sFormId": "quote", "sOpType": "create"},
        {"sUserId": "boss", "sFormId": "*", "sOpType": "*", "sBrandsId": "b2"},
    ],
    region: [{"sId": "r1", "sName": "华东", "sManager": "王经理"}],
    customer: [
        {
            "sId": "c1",
            "sNo": "KH0001",
            "sName": "上海晨光文具有限公司",
            "sAddress": "漕河泾1号",
            "sRegionId": "r1",
        },
        {"sId": "c2", "sNo": "KH0002", "sName": "北京同名公司"},
        {"sId": "c3", "sNo": "KH0003", "sName": "北京同名公司"},
        {"sId": "c4", "sNo": "KH0004", "sName": "Acme Paper"},
        {"sId": "c5", "sNo": "KH0005", "sName": "已停业公司", "bInvalid": 1},
        {"sId": "c9", "sNo": "KH0009", "sName": "外地公司", "sBrandsId": "b2"},
    ],
    product: [{"sId": "p1", "sName": "铜版纸", "dCost": Decimal("1.2345")}, {"sId": "p2", "sName": "胶版纸"}],
    quote: [
        {
            "sId": "q1",
            "sBillNo": "BJD202611001",
            "sTitle": "画册",
            "sCustomerId": "c1",
            "sKind": "normal",
            "iDays": 30,
            "dTaxRate": Decimal("0.1300"),
            "dTotal": Decimal("30.00"),
            "dGross": Decimal("3.90"),
            "sSalesman": "boss",
        },
        {
            "sId": "q2",
            "sBillNo": "BJD202611002",
            "sTitle": "已审",
            "sCustomerId": "c4",
            "dTotal": Decimal("20000.00"),
            "bCheck": 1,
        },
        {"sId": "q3", "sBillNo": "BJD202611003", "sTitle": "作废", "sCustomerId": "c4", "bInvalid": 1},
        {"sId": "q9", "sBillNo": "BJD202611001", "sTitle": "他司", "sCustomerId": "c9", "sBrandsId": "b2"},
    ],
    part: [
        {
            "sId": "l1",
            "sParentId": "q1",
            "iOrder": 1,
            "sName": "封面",
            "dQuantity": Decimal("10.000"),
            "dPrice": Decimal("1.0000"),
            "dAmount": Decimal("10.00"),
        },
        {
            "sId": "l2",
            "sParentId": "q1",
            "iOrder": 2,
            "sName": "内页",
            "dQuantity": Decimal("20.000"),
            "dPrice": Decimal("1.0000"),
            "dAmount": Decimal("20.00"),
        },
    ],
    tier: [
        {
            "sId": "t1",
            "sParentId": "l1",
            "iOrder": 1,
            "dQuantity": Decimal("100.000"),
            "dPrice": Decimal("0.9000"),
            "dAmount": Decimal("90.00"),
        }
    ],
    request: [
        {"sId": "rq1", "sBillNo": "QGD0001", "sDepartment": "生产部", "bCheck": 1},
        {"sId": "rq2", "sBillNo": "QGD0002", "sDepartment": "仓库"},
    ],
    request_line: [
        {
            "sId": "rl1",
            "sParentId": "rq1",
            "iOrder": 1,
            "sProductId": "p1",
            "dQuantity": Decimal("100.000"),
            "dOrdered": Decimal("40.000"),
        },
        {"sId": "rl2", "sParentId": "rq1", "iOrder": 2, "sProductId": "p2", "dQuantity": Decimal("50.000")},
        {
            "sId": "rl3",
            "sParentId": "rq1",
            "iOrder": 3,
            "sProductId": "p2",
            "dQuantity": Decimal("5.000"),
            "dOrdered": Decimal("5.000"),
        },
        {"sId": "rl4", "sParentId": "rq2", "iOrder": 1, "sProductId": "p2", "dQuantity": Decimal("7.000")},
    ],
}
