"""Many rows in one statement are the same rows as one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select

from staging.storage.bulk import insert_rows
from staging.storage.tables import audit_log, metadata

_AT = datetime(2026, 11, 30, 8, 0, 0, 123456, UTC)
_TEXTS = (
    "plain",
    "中文，表情😀",
    "'; DROP TABLE ai_audit_log; --",
    '"quoted" \\ back\\u0041slash',
    "line\nbreak\ttab",
    "",
    "%s %(name)s :bound {}",
    "é as one, é as two",
)


def _row(seq: int, text: str) -> dict[str, Any]:
    return {
        "sChain": "B/S",
        "iSeq": seq,
        "sBrandsId": "B",
        "sSubsidiaryId": "S",
        "sActor": text,
        "sActorKind": "person",
        "sAction": "test",
        "sOpId": "",
        "jDetail": '{"kept": "to  the character", "n": 12345678901234567890, "d": 0.1000}',
        "tCreateDate": _AT + timedelta(microseconds=seq % 1000),
        "sPrevHash": "a",
        "sHash": "b",
    }


@pytest.mark.parametrize("count", [1, len(_TEXTS)])
def test_rows_come_back_as_they_were_given(engine: Engine, count: int) -> None:
    metadata.create_all(engine)
    rows = [_row(2**62 + n, text) for n, text in enumerate(_TEXTS[:count])]
    with engine.begin() as connection:
        insert_rows(connection, audit_log, rows)
        found = connection.execute(select(audit_log).order_by(audit_log.c.iSeq)).mappings().all()
    assert [dict(row) for row in found] == rows


def test_a_row_too_long_for_its_column_leaves_none_of_them(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps strings of any length")
    metadata.create_all(engine)
    with pytest.raises(Exception, match=r"(?i)too long"), engine.begin() as connection:
        insert_rows(connection, audit_log, [_row(1, "short"), _row(2, "x" * 200)])
    with engine.connect() as connection:
        assert connection.execute(select(audit_log.c.iSeq)).all() == []
