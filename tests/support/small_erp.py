"""A small ERP of five forms with tables of its own: what the writing half of the generic adapter is tested on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Column, Date, Engine, Integer, MetaData, SmallInteger, String, Table, Text, text
from sqlalchemy.exc import DBAPIError

from staging.contracts.error import ErrorCode
from staging.contracts.form import Catalogue
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor, Tenant, new_id
from staging.domain.ports import Execution, Outcome, Route
from staging.storage.dberrors import classify_db_error
from staging.storage.dialect import ExactDecimal, IdString, UtcDateTime
from workers.erp.sql.apply import apply_form_operation
from workers.erp.sql.catalogue_tables import tables_of
from workers.erp.sql.context import WriteContext
from workers.erp.tables import erp_metadata

TENANT = Tenant("1111111111", "1111111111")
OTHER_TENANT = Tenant("2222222222", "1111111111")
USER = Actor(TENANT, "u-lin")
NOW = datetime(2026, 11, 30, 16, 30, 0, 123456, tzinfo=UTC)
TODAY = date(2026, 12, 1)  # the tenant's date is ahead of UTC's

schema = MetaData()


def _key(name: str = "sId", *, primary: bool = False) -> Column[Any]:
    return Column(name, IdString(64), primary_key=primary, nullable=not primary)


def _amount(name: str, scale: int = 2) -> Column[Any]:
    return Column(name, ExactDecimal(18, scale), nullable=False, server_default=f"{0:.{scale}f}")


def _tenant() -> list[Column[Any]]:
    return [
        Column("sBrandsId", IdString(64), nullable=False),
        Column("sSubsidiaryId", IdString(64), nullable=False),
    ]


def _state(name: str) -> list[Column[Any]]:
    return [
        Column(f"b{name}", SmallInteger),  # no default: an ERP's older rows have it empty
        Column(f"s{name}Person", IdString(64)),
        Column(f"t{name}Date", UtcDateTime),
    ]


def _document(name: str, *columns: Column[Any]) -> Table:
    made = [Column("sMakePerson", IdString(64)), Column("tCreateDate", UtcDateTime)]
    modified = [Column("sModifyPerson", IdString(64)), Column("tModifyDate", UtcDateTime)]
    number = Column("sBillNo", String(50))
    states = [*_state("Check"), *_state("Invalid")]
    return Table(name, schema, _key(primary=True), *_tenant(), number, *columns, *made, *modified, *states)


def _lines(name: str, *columns: Column[Any], tenant: bool = True) -> Table:
    owner = _tenant() if tenant else []
    parent = [Column("sParentId", IdString(64), nullable=False), Column("iOrder", Integer)]
    return Table(name, schema, _key(primary=True), *owner, *parent, *columns)


product = Table("t_product", schema, _key(primary=True), *_tenant(), Column("sName", String(100)))
quote = _document(
    "t_quote",
    Column("sTitle", String(100), nullable=False),
    Column("sMemo", Text),
    Column("tDelivery", Date),
    Column("tSentAt", UtcDateTime),
    Column("iDays", Integer, server_default="30"),
    Column("bUrgent", SmallInteger, nullable=False, server_default="0"),
    _amount("dTotal"),
    Column("dFactor", ExactDecimal(6, 4)),
    Column("dGross", ExactDecimal(18, 2)),
)
part = _lines(
    "t_part", Column("sName", String(50)), _amount("dQuantity", 3), _amount("dPrice", 4), _amount("dAmount")
)
tier = _lines("t_tier", _amount("dQuantity", 3), _amount("dPrice", 4), _amount("dAmount"), tenant=False)
requisition = _document("t_req")
requisition_line = _lines(
    "t_reqline", _key("sProductId"), _amount("dQuantity", 3), _amount("dPrice", 4), _amount("dOrdered", 3)
)
order = _document("t_order", _key("sRequisitionId"), Column("sSupplier", String(50)))
order_line = _lines(
    "t_orderline", _key("sProductId"), _amount("dQuantity", 3), _amount("dPrice", 4), _key("sSourceLineId")
)
move = _document("t_move")
move_line = _lines(
    "t_moveline", _key("sProductId"), _key("sWarehouseId"), _amount("dQuantity", 3), _key("sPromiseId")
)
inbound = _document("t_inbound")
inbound_line = _lines("t_inboundline", _key("sProductId"), _key("sWarehouseId"), _amount("dQuantity", 3))
# No unique index on purpose: nothing but our own care keeps two rows of one place apart.
stock = Table(
    "t_stock",
    schema,
    _key(primary=True),
    *_tenant(),
    _key("sProductId"),
    _key("sWarehouseId"),
    _amount("dQuantity", 3),
    _amount("dReserved", 3),
)


def _field(name: str, column: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "column": column, "label": {"zh": name, "en": name}, "type": kind, **more}


def _decimal(name: str, column: str, decimals: int, **more: Any) -> dict[str, Any]:
    return _field(name, column, "decimal", decimals=decimals, **more)


_PRODUCT = _field("product", "sProductId", "reference", reference={"form": "product", "names": ["name"]})
_WAREHOUSE = _field("warehouse", "sWarehouseId", "string")
_QUANTITY, _PRICE = _decimal("quantity", "dQuantity", 3), _decimal("price", "dPrice", 4)
_AMOUNT = _decimal("amount", "dAmount", 2, computed={"product": ["quantity", "price"]})
_NUMBER = _field("billNo", "sBillNo", "string", writable=False)
_ALL = ("create", "update", "delete", "examine", "cancelExamine", "invalid", "cancelInvalid")


def _child(name: str, table: str, fields: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "table": table,
        "label": {"zh": "明细", "en": "Lines"},
        "fields": fields,
        "tenant": {},
        **more,
    }


def _form(form_id: str, zh: str, en: str, table: str, prefix: str, **more: Any) -> dict[str, Any]:
    return {
        "id": form_id,
        "module": "erp",
        "label": {"zh": zh, "en": en},
        "table": table,
        "maker": {"column": "sMakePerson", "at": "tCreateDate"},
        "modified": {"column": "sModifyPerson", "at": "tModifyDate"},
        "states": {
            "examined": {"column": "bCheck", "by": "sCheckPerson", "at": "tCheckDate"},
            "invalid": {"column": "bInvalid", "by": "sInvalidPerson", "at": "tInvalidDate"},
        },
        "number": {"field": "billNo", "rule": f"{prefix}{{yyyyMM}}{{seq:3}}"},
        "operations": {op: {} for op in _ALL},
        "fields": [_NUMBER],
        **more,
    }


_STOCK = {
    "child": "lines",
    "product": "product",
    "warehouse": "warehouse",
    "quantity": "quantity",
    "table": "t_stock",
    "product_column": "sProductId",
    "warehouse_column": "sWarehouseId",
    "quantity_column": "dQuantity",
    "reserved_column": "dReserved",
}
_QUOTE_FIELDS = [
    _NUMBER,
    _field("title", "sTitle", "string", length=100),
    _field("memo", "sMemo", "text"),
    _field("delivery", "tDelivery", "date"),
    _field("sentAt", "tSentAt", "datetime"),
    _field("days", "iDays", "integer"),
    _field("urgent", "bUrgent", "boolean"),
    _decimal("gross", "dGross", 2, computed={"product": ["total", "factor"]}),
    _decimal("total", "dTotal", 2, computed={"sum": "parts.amount"}),
    _decimal("factor", "dFactor", 4, precision=6),
]
_TIERS = _child("tiers", "t_tier", [_QUANTITY, _PRICE, _AMOUNT], tenant=None)
_PARTS = _child(
    "parts",
    "t_part",
    [_field("name", "sName", "string"), _QUANTITY, _PRICE, _AMOUNT],
    children=[_TIERS],
    min_lines=1,
)
_GENERATE = {
    "source": "requisition",
    "source_child": "lines",
    "target_child": "lines",
    "lines": {"product": "product", "price": "price"},
    "write_back": {"taken": "dOrdered", "limit": "quantity"},
    "source_line": "sSourceLineId",
    "source_bill": "sRequisitionId",
}

CATALOGUE = Catalogue.model_validate(
    {
        "permissions": {"allow_all": True},
        "forms": [
            {
                "id": "product",
                "module": "erp",
                "label": {"zh": "产品", "en": "Product"},
                "table": "t_product",
                "operations": {"create": {}, "examine": {}},
                "fields": [_field("name", "sName", "string")],
            },
            _form("quote", "报价单", "Quotation", "t_quote", "BJD", fields=_QUOTE_FIELDS, children=[_PARTS]),
            _form(
                "requisition",
                "申请单",
                "Requisition",
                "t_req",
                "QGD",
                lock_when_referenced_by=["order.requisition"],
                children=[_child("lines", "t_reqline", [_PRODUCT, _QUANTITY, _PRICE])],
            ),
            _form(
                "order",
                "采购订单",
                "Order",
                "t_order",
                "CGD",
                operations={**{op: {} for op in _ALL}, "generate": {}, "delete": {"physical": True}},
                generate=[_GENERATE],
                fields=[
                    _NUMBER,
                    _field("supplier", "sSupplier", "string"),
                    _field(
                        "requisition",
                        "sRequisitionId",
                        "reference",
                        writable=False,
                        reference={"form": "requisition"},
                    ),
                ],
                children=[_child("lines", "t_orderline", [_PRODUCT, _QUANTITY, _PRICE])],
            ),
            _form(
                "outbound",
                "出库单",
                "Outbound",
                "t_move",
                "CKD",
                stock={**_STOCK, "direction": -1, "fulfils_column": "sPromiseId"},
                children=[_child("lines", "t_moveline", [_PRODUCT, _WAREHOUSE, _QUANTITY])],
            ),
            _form(
                "inbound",
                "入库单",
                "Inbound",
                "t_inbound",
                "RKD",
                stock={**_STOCK, "direction": 1},
                children=[_child("lines", "t_inboundline", [_PRODUCT, _WAREHOUSE, _QUANTITY])],
            ),
        ],
    }
)
FORMS = {form.id: form for form in CATALOGUE.forms}


def execution(form_id: str, op: str, actor: Actor = USER, **what: Any) -> Execution:
    """An ``Execution`` of ``op`` on a form: ``payload``, ``target``, ``source_ref``."""
    form = FORMS[form_id]
    route = Route(form.command_type(op), form_id, form.module, form.table, op, True, False)
    payload, target, source_ref = what.get("payload", {}), what.get("target", ""), what.get("source_ref")
    return Execution(new_id(), actor, route, target, payload, source_ref, None, "", True)


class SmallErp:
    """The ERP in a fresh database. ``run`` makes one operation in a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        schema.create_all(engine)
        erp_metadata.create_all(engine)

    def run(self, form_id: str, op: str, *, today: date = TODAY, actor: Actor = USER, **what: Any) -> Outcome:
        with self.engine.begin() as connection:
            done = execution(form_id, op, actor, **what)
            return apply_form_operation(
                connection, CATALOGUE, FORMS[form_id], done, plan=done, now_utc=NOW, today=today
            )

    def retried(self, form_id: str, op: str, **what: Any) -> Outcome:
        """``run``, as the executor does it: a transaction that a deadlock or lock timeout undid runs again."""
        for _ in range(20):
            try:
                return self.run(form_id, op, **what)
            except DBAPIError as error:
                if not classify_db_error(error).is_transient:
                    raise
        raise AssertionError(f"{form_id}.{op}: twenty transient failures")

    def allowed(self, form_id: str, op: str, **what: Any) -> bool:
        """False if a business rule refused it; any other refusal is raised."""
        try:
            self.retried(form_id, op, **what)
        except OpstageError as error:
            if error.code is not ErrorCode.BUSINESS_RULE:
                raise
            return False
        return True

    def refusal(self, form_id: str, op: str, **what: Any) -> OpstageError:
        """The error of an operation that must be refused, having changed nothing at all."""
        before = self.snapshot()
        try:
            self.run(form_id, op, **what)
        except OpstageError as error:
            assert self.snapshot() == before, "refused, but something has changed"
            return error
        raise AssertionError(f"{form_id}.{op} was not refused")

    def empty(self) -> None:
        """Delete all rows of all tables."""
        with self.engine.begin() as connection:
            for table in (*schema.sorted_tables, *erp_metadata.sorted_tables):
                connection.execute(table.delete())

    def context(self, connection: Any, actor: Actor = USER) -> WriteContext:
        return WriteContext(connection, tables_of(CATALOGUE), actor, NOW, TODAY)

    def rows(self, table: Table, **where: Any) -> list[dict[str, Any]]:
        """Rows as dicts, by line number where there is one, then by key."""
        order = [table.c[name] for name in ("iOrder", "sId") if name in table.c]
        query = table.select().where(*(table.c[k] == v for k, v in where.items())).order_by(*order)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def one(self, table: Table, **where: Any) -> dict[str, Any]:
        (row,) = self.rows(table, **where)
        return row

    def insert(self, table: Table, *rows: Mapping[str, Any], tenant: Tenant = TENANT) -> None:
        """Insert rows as the ERP itself would, with the tenant's columns."""
        owner = {"sBrandsId": tenant.brands_id, "sSubsidiaryId": tenant.subsidiary_id}
        with self.engine.begin() as connection:
            for row in rows:
                connection.execute(table.insert(), {**owner, **row})

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Everything in every table, counters too; to show that nothing changed."""
        tables = [*schema.sorted_tables, *erp_metadata.sorted_tables]
        with self.engine.connect() as connection:
            read = {
                t.name: [dict(r) for r in connection.execute(text(f"SELECT * FROM {t.name}")).mappings()]
                for t in tables
            }
        return {name: sorted(rows, key=str) for name, rows in read.items()}
