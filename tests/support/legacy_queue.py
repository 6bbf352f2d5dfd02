"""Tables ``ai_op_queue`` as agents made them before Opstage came: several shapes, with rows in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, text

from staging.contracts.status import LEGACY_STATUSES

STATUSES = ("pending", *sorted(LEGACY_STATUSES))


@dataclass(frozen=True)
class Shape:
    """``columns``: name → SQL type and constraints, for all engines or for each; ``rest``: what follows them.

    ``extra``: values of the columns only this shape has. ``widened``/``loosened``: what an adoption may leave changed.
    """

    columns: Mapping[str, str | Mapping[str, str]]
    rest: Sequence[str] = ()
    after: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    loosened: frozenset[str] = frozenset()

    def create(self, engine: Engine) -> None:
        """Make the table, as another program would: in a plain session."""
        kind = kind_of(engine)
        parts = [
            f'"{name}" {type_ if isinstance(type_, str) else type_[kind]}'
            for name, type_ in self.columns.items()
        ]
        body = ", -- as it was\n  ".join([*parts, *self.rest])
        ddl = f"CREATE TABLE ai_op_queue (\n  {body}\n)"
        with engine.begin() as connection:
            for statement in (f"{ddl}{self.options.get(kind, '')}", *self.after):
                connection.exec_driver_sql(in_dialect(engine, statement))

    def insert(self, connection: Connection, number: int) -> str:
        """INSERT row ``number`` by naming just this table's columns; returns its id."""
        row = self.row(number)
        names = ", ".join(f'"{name}"' for name in row)
        places = ", ".join(f":{name}" for name in row)
        statement = in_dialect(connection.engine, f"INSERT INTO ai_op_queue ({names}) VALUES ({places})")
        connection.execute(text(statement), row)
        return str(row["sId"])

    def fill(self, engine: Engine, count: int) -> None:
        """INSERT rows 0 to ``count`` - 1 in one go."""
        rows = [self.row(number) for number in range(count)]
        if not rows:
            return
        names = ", ".join(f'"{name}"' for name in rows[0])
        places = ", ".join(f":{name}" for name in rows[0])
        with engine.begin() as connection:
            connection.execute(
                text(in_dialect(engine, f"INSERT INTO ai_op_queue ({names}) VALUES ({places})")), rows
            )

    def row(self, number: int) -> dict[str, Any]:
        status = STATUSES[number % len(STATUSES)]
        values: dict[str, Any] = {
            "sId": f"{number:08d}-1111-4222-8333-abcdefabcdef",
            "sBrandsId": "B001",
            "sSubsidiaryId": "S01",
            "sMakePerson": f"user{number % 7}",
            "sUserId": f"user{number % 7}",
            "sOpType": "create",
            "sTargetFormId": "quotation",
            "sTargetBillId": "",
            "sPayload": f'{{"sRemark": "第{number}单", "dPrice": 12.50}}',
            "sStatus": status,
            "iStatusCode": 100 if status == "pending" else 0,
            "bAutoExecute": number % 2,
            "tCreateDate": f"2026-11-{1 + number % 28:02d} 08:30:00",
        } | dict(self.extra)
        return {name: values[name] for name in self.columns if name in values}

    def content(self, engine: Engine) -> list[dict[str, Any]]:
        """All rows with this shape's columns, by id; CHAR padding aside."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        statement = in_dialect(engine, f'SELECT {names} FROM ai_op_queue ORDER BY "sId"')
        with engine.connect() as connection:
            rows = [dict(row) for row in connection.execute(text(statement)).mappings()]
        return [{**row, "sId": row["sId"].rstrip()} for row in rows]


def kind_of(engine: Engine) -> str:
    """sqlite, postgresql or mariadb."""
    return "mariadb" if engine.dialect.name in ("mysql", "mariadb") else engine.dialect.name


def in_dialect(engine: Engine, statement: str) -> str:
    """Double quotes around names, as this engine writes them."""
    return statement.replace('"', "`") if kind_of(engine) == "mariadb" else statement


_TIME = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP", "mariadb": "DATETIME"}

# The starred columns and bAutoExecute, as wide as the contract says; a primary key under a name of its own.
AS_IN_THE_CONTRACT = Shape(
    {
        "sId": "VARCHAR(64) NOT NULL",
        "sBrandsId": "VARCHAR(64) NOT NULL",
        "sSubsidiaryId": "VARCHAR(64) NOT NULL",
        "sMakePerson": "VARCHAR(64) NOT NULL",
        "sOpType": "VARCHAR(50) NOT NULL",
        "sTargetFormId": "VARCHAR(100) NOT NULL",
        "sPayload": "TEXT NOT NULL",
        "bAutoExecute": "SMALLINT NOT NULL",
        "sStatus": "VARCHAR(20) NOT NULL",
        "iStatusCode": "INTEGER NOT NULL",
    },
    rest=['CONSTRAINT the_agents_key PRIMARY KEY ("sId")'],
)

# Another order, narrow, no key at all, JSON, local-looking time, case-insensitive on MariaDB, columns nobody knows.
NARROW = Shape(
    {
        "tCreateDate": _TIME,
        "sStatus": "VARCHAR(12) NOT NULL",
        "iStatusCode": {"sqlite": "INT", "postgresql": "SMALLINT", "mariadb": "TINYINT UNSIGNED"},
        "sRemark": {
            "sqlite": "TEXT NOT NULL",
            "postgresql": "TEXT NOT NULL",
            "mariadb": "VARCHAR(40) NOT NULL",
        },
        "sPayload": {"sqlite": "JSON NOT NULL", "postgresql": "json NOT NULL", "mariadb": "JSON NOT NULL"},
        "sOpType": "VARCHAR(20) NOT NULL DEFAULT 'create'",
        "sTargetFormId": "VARCHAR(40) NOT NULL",
        "sTargetBillId": "VARCHAR(40)",
        "sMakePerson": "VARCHAR(32) NOT NULL",
        "sSubsidiaryId": "VARCHAR(32) NOT NULL",
        "sBrandsId": {
            "sqlite": "VARCHAR(32) COLLATE NOCASE NOT NULL",
            "postgresql": "VARCHAR(32) NOT NULL",
            "mariadb": "VARCHAR(32) NOT NULL COMMENT 'tenant, ''B''; not null'",
        },
        "sId": "VARCHAR(40)",
        "bAutoExecute": {"sqlite": "BOOLEAN", "postgresql": "INTEGER", "mariadb": "TINYINT(1)"},
        "iVersion": "INTEGER NOT NULL",
    },
    after=['CREATE INDEX ix_agent_status ON ai_op_queue ("sStatus")'],
    options={"mariadb": " DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='待办; \"queue\"'"},
    extra={"sRemark": "it's, (ours)", "iVersion": 3},
)

# Before sMakePerson and iStatusCode: sUserId, CHAR ids, jsonb, a counter as primary key, a key column of its own.
OLD = Shape(
    {
        "iIncrement": {
            "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
            "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "mariadb": "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        },
        "sId": "CHAR(36) NOT NULL",
        "sBrandsId": "VARCHAR(64) NOT NULL",
        "sSubsidiaryId": "VARCHAR(64) NOT NULL",
        "sUserId": "VARCHAR(64) NOT NULL",
        "sOpType": "VARCHAR(50) NOT NULL",
        "sTargetFormId": "VARCHAR(100) NOT NULL",
        "sTargetBillId": "VARCHAR(200)",
        "sPayload": {"sqlite": "TEXT", "postgresql": "jsonb", "mariadb": "LONGTEXT"},
        "sStatus": "VARCHAR(20) NOT NULL",
        "bAutoExecute": "SMALLINT NOT NULL DEFAULT 0",
        "sIdempotencyKey": "VARCHAR(60)",
        "tCreateDate": _TIME,
        "sResultMsg": "VARCHAR(200) NOT NULL DEFAULT ''",
    },
    rest=['CONSTRAINT agent_id UNIQUE ("sId")', "CONSTRAINT not_both CHECK (\"sOpType\" <> ', ) --')"],
    options={"mariadb": " DEFAULT CHARSET=utf8mb3"},
    loosened=frozenset({"sResultMsg"}),
)

SHAPES = {"as in the contract": AS_IN_THE_CONTRACT, "narrow": NARROW, "old": OLD}
