"""An empty reference database filled with tenants and finished history, by set-based SQL, and ANALYZEd.

Without history and statistics a young table gets plans that fit an empty one: everybody would be measured on those.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine, text

from tests.benchmarks.reference.orders import SUBSIDIARY, USER

_SERIES = {
    "postgresql": "SELECT g AS n FROM generate_series(cast(:low AS int), cast(:high AS int)) g",
    "mariadb": "SELECT seq + :low - 1 AS n FROM seq_1_to_1000000 WHERE seq <= :high - :low + 1",
    "sqlite": "WITH RECURSIVE r(n) AS (SELECT :low UNION ALL SELECT n + 1 FROM r WHERE n < :high) SELECT n FROM r",
}
_YESTERDAY = {
    "postgresql": "now() - interval '1 day'",
    "mariadb": "utc_timestamp(6) - interval 1 day",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day') || '000'",
}
_STEP = 250_000


def fill(engine: Engine, rows: int, tenants: int, payload_bytes: int) -> None:
    """``rows`` finished operations in every table a run reads or writes."""
    with engine.begin() as connection:
        _tenants(connection, tenants)
    for low in range(1, rows + 1, _STEP):
        with engine.begin() as connection:
            _history(connection, low, min(rows, low + _STEP - 1), tenants, payload_bytes)
    analyze(engine)


def fill_queue(engine: Engine, rows: int, tenants: int) -> None:
    """``rows`` finished operations in the product's own tables alone."""
    with engine.begin() as connection:
        _history(connection, 1, rows, tenants, 60, only=("ai_op_queue", "ai_op_event"))
    analyze(engine)


def analyze(engine: Engine) -> None:
    name = engine.dialect.name
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if name == "postgresql":
            connection.execute(text("VACUUM (ANALYZE)"))
        elif name == "sqlite":
            connection.execute(text("ANALYZE"))
        else:
            names = ", ".join(row[0] for row in connection.execute(text("SHOW TABLES")))
            connection.execute(text(f"ANALYZE TABLE {names}")).all()


def _family(connection: Connection) -> str:
    name = connection.dialect.name
    return "mariadb" if name in ("mysql", "mariadb") else name


def _tenants(connection: Connection, tenants: int) -> None:
    family = _family(connection)
    brands = _brands(family, "n")
    series = f"({_SERIES[family]}) s"
    bounds = {"low": 1, "high": tenants}
    for statement in (
        f"INSERT INTO po_counter SELECT {brands}, '{SUBSIDIARY}', 0 FROM {series}",
        f"INSERT INTO po_budget SELECT {brands}, '{SUBSIDIARY}', 0, 1000000000000 FROM {series}",
        f"INSERT INTO po_grant SELECT n, {brands}, '{SUBSIDIARY}', '{USER}', '*', '*' FROM {series}",
    ):
        connection.execute(text(statement), bounds)


def _history(
    connection: Connection, low: int, high: int, tenants: int, payload_bytes: int, only: Sequence[str] = ()
) -> None:
    family = _family(connection)
    key, brands = _concat(family, "'seed-'", "n"), _brands(family, f"n % {tenants} + 1")
    payload, memo = f"'{'x' * payload_bytes}'", f"'{'x' * (payload_bytes // 2)}'"
    then = _YESTERDAY[family]
    tenant = {"sBrandsId": brands, "sSubsidiaryId": f"'{SUBSIDIARY}'"}
    own_tenant = {"brands": brands, "subsidiary": f"'{SUBSIDIARY}'"}
    one, three = f"({_SERIES[family]}) s", "(SELECT 1 AS l UNION ALL SELECT 2 UNION ALL SELECT 3) three"
    master = {
        "id": key,
        **own_tenant,
        "bill_no": _concat(family, "'OLD'", "n"),
        "supplier": "'old'",
        "memo": memo,
    }
    line = {"id": _concat(family, "l", "'-'", "n"), "master_id": key, "line_no": "l", "product": "'P'"}
    ledger = {"sIdempotencyKey": key, **tenant, "sOpId": key, "sCommandType": "'seed'", "sPayloadHash": "''"}
    waited = {"id": key, **own_tenant, "shard": f"n % {tenants}", "payload": payload, "status": "'done'"}
    staged = {
        "sId": key,
        **tenant,
        "sMakePerson": f"'{USER}'",
        "sOpType": "'create'",
        "sTargetFormId": "'po'",
        "sCommandType": "'erp.po.create'",
        "sPayload": payload,
        "bAutoExecute": "1",
        "sStatus": "'success'",
        "iStatusCode": "200",
        "tCreateDate": then,
        "tExecutedDate": then,
        "sIdempotencyKey": key,
        "iAttempt": "1",
        "iSeq": "3",
        "sPreparationId": key,
        "jPreview": payload,
    }
    event = {"sOpId": key, "iSeq": "l", "sVerb": "'finish'", "sStatus": "'success'", "iStatusCode": "200"}
    filled = (
        ("po_master", {**master, "total": "158.25", "maker": "'seed'", "created_at": then}, one),
        ("po_line", {**line, "quantity": "1", "price": "1", "amount": "1"}, f"{one}, {three}"),
        ("ai_op_ledger", {**ledger, "sResult": "'{}'"}, one),
        ("bench_queue", waited, one),
        ("ai_op_queue", staged, one),
        ("ai_op_event", {**event, "iAttempt": "1", "tCreateDate": then}, f"{one}, {three}"),
    )
    quote = connection.dialect.identifier_preparer.quote
    for table, values, source in filled:
        if only and table not in only:
            continue
        columns, selected = ", ".join(map(quote, values)), ", ".join(values.values())
        connection.execute(
            text(f"INSERT INTO {table} ({columns}) SELECT {selected} FROM {source}"),
            {"low": low, "high": high},
        )


def _concat(family: str, *parts: str) -> str:
    if family == "mariadb":
        return f"concat({', '.join(parts)})"
    return " || ".join(part if part.startswith("'") else f"cast({part} AS text)" for part in parts)


def _brands(family: str, number: str) -> str:
    """Tenants are B0000, B0001, …; ``number`` counts from one."""
    if family == "sqlite":
        return f"printf('B%04d', {number} - 1)"
    if family == "mariadb":
        return f"concat('B', lpad(cast(({number}) - 1 AS char(8)), 4, '0'))"
    return f"'B' || lpad(cast(({number}) - 1 AS text), 4, '0')"
