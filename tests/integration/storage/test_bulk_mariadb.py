"""MariaDB: many rows updated by one statement are as they would be one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.exc import DBAPIError

from staging.storage import bulk_mariadb
from staging.storage.bulk import insert_rows
from staging.storage.bulk_mariadb import execute_given, takes_json_table, update_given
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.engine import make_engine
from workers.erp.tables import erp_metadata, op_ledger

_l = op_ledger.c
_KEY = (_l.sIdempotencyKey, _l.sBrandsId, _l.sSubsidiaryId)
_TEXTS = (
    "plain",
    "",
    None,
    "中文，表情😀",
    "'single' \"double\" \\ back\\u0041slash \\\\",
    "line\nbreak\r\ttab",
    "\x01\x07\x1f\x7f",
    "%s %(name)s :bound {} $.path [*]",
    " blanks around ",
    json.dumps({"in": json.dumps({"json": '"\\ 中'})}, ensure_ascii=False),
    "null",
    "x" * 400_000,
    "y" * 700_000,
)
_ROWS = [{"sIdempotencyKey": f"k{n}é", "sBrandsId": "B", "sSubsidiaryId": "S"} for n in range(len(_TEXTS))]
_SET_NULL = update_given(op_ledger, _KEY, (_l.sResult,), (_l.sOpId == "op",), {_l.sCommandType: None})
_SET = update_given(op_ledger, _KEY, (_l.sPayloadHash, _l.sResult), (_l.sOpId == "op",))


@pytest.fixture
def database(mariadb_database: str) -> Iterator[Engine]:
    engine = make_engine(mariadb_database, lock_timeout_s=1.0)
    erp_metadata.create_all(engine)
    with engine.begin() as connection:
        rest = {"sOpId": "op", "sCommandType": "test", "sPayloadHash": "h"}
        insert_rows(connection, op_ledger, [row | rest for row in _ROWS])
    yield engine
    engine.dispose()


def _given(**more: Any) -> list[dict[str, Any]]:
    rows = zip(_ROWS, _TEXTS, strict=True)
    return [{**row, "sPayloadHash": "new", "sResult": result, **more} for row, result in rows]


def test_text_is_kept_to_the_character_however_long_all_of_it_is(database: Engine) -> None:
    assert len(json.dumps(_TEXTS)) > bulk_mariadb._MOST_CHARACTERS
    with database.begin() as connection:
        assert takes_json_table(connection, _given())
        assert execute_given(connection, _SET, _given()) == len(_ROWS)
        assert execute_given(connection, _SET, _given()) == len(_ROWS), "the same values are rows as well"
        kept = connection.execute(select(_l.sIdempotencyKey, _l.sResult, _l.sPayloadHash)).all()
    assert {row.sIdempotencyKey: row.sResult for row in kept} == {
        row["sIdempotencyKey"]: result for row, result in zip(_ROWS, _TEXTS, strict=True)
    }
    assert {row.sPayloadHash for row in kept} == {"new"}


def test_only_rows_that_are_as_compared_are_changed_and_counted(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(update(op_ledger).where(_l.sIdempotencyKey == "k0é").values(sOpId="another"))
        others = [{**row, "sSubsidiaryId": "s"} for row in _given()[1:3]]
        assert execute_given(connection, _SET, [*_given()[:1], *others, *_given()[3:5]]) == 2
        changed = select(_l.sIdempotencyKey).where(_l.sPayloadHash == "new")
        assert set(connection.execute(changed).scalars()) == {"k3é", "k4é"}


def test_what_is_too_long_or_may_not_be_null_is_refused(database: Engine) -> None:
    with pytest.raises(DBAPIError, match=r"(?i)too long") as caught, database.begin() as connection:
        execute_given(connection, _SET, _given(sPayloadHash="x" * 81))
    assert classify_db_error(caught.value) is DbFailure.DATA
    with pytest.raises(DBAPIError) as caught, database.begin() as connection:
        execute_given(connection, _SET_NULL, _given())
    assert classify_db_error(caught.value) is DbFailure.INTEGRITY


def test_rows_that_somebody_else_holds_are_not_waited_for(database: Engine) -> None:
    """However small the table: each row is found by its key."""
    with database.begin() as another:
        another.execute(update(op_ledger).where(_l.sIdempotencyKey == "k0é").values(sResult="held"))
        with database.begin() as connection:
            assert execute_given(connection, _SET, _given()[1:3]) == 2
