"""A group's ledger rows are found by their key, however many there are of other operations."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine, text

from staging.domain.identity import Tenant
from staging.domain.ports import LedgerRow
from workers.erp.ledger import SqlLedger
from workers.erp.tables import erp_metadata

TENANT = Tenant("1111111111", "1111111111")
LEDGER = SqlLedger()
_SCANS = text("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'ai_op_ledger'")


def group(connection: Connection, number: int, size: int) -> None:
    keys = [f"key-{number}-{n}" for n in range(size)]
    rows = [LedgerRow(key, key, "erp.x.create", "sha256:aa") for key in keys]
    assert LEDGER.insert_all(connection, TENANT, rows) == {}
    LEDGER.store_results(connection, TENANT, {key: {"resultBillId": "b-1"} for key in keys})


@pytest.fixture
def postgresql(engine: Engine) -> Engine:
    if engine.dialect.name != "postgresql":
        pytest.skip("the others are given a row at a time")
    erp_metadata.create_all(engine)
    return engine


def test_a_group_reads_its_own_rows_of_the_ledger_only(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        for number in range(10):
            group(connection, number, 1000)
    with postgresql.connect() as connection:
        connection.execute(text("ANALYZE ai_op_ledger"))
        connection.commit()
        # Until the driver has prepared the statements, and the server its plan for any number of keys.
        for number in range(20, 40):
            group(connection, number, 100)
            connection.commit()
        group(connection, 40, 100)
        assert connection.execute(_SCANS).scalar_one() == 0
        connection.commit()
