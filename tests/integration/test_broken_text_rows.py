"""A row whose text is not text (another program's bytes) ends as invalid, by itself, and holds up nobody."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from staging.contracts.status import Status, StatusCode as C
from tests.support.hostile_json import text_literal
from tests.support.queue_rows import quoted
from tests.support.world import World


def break_text(world: World, op_id: str, column: str, content: bytes) -> None:
    with world.queue.begin() as connection:
        name, key = quoted(connection, column), quoted(connection, "sId")
        literal = text_literal(world.kind, content)
        connection.exec_driver_sql(f"UPDATE ai_op_queue SET {name} = {literal} WHERE {key} = '{op_id}'")


# An encoded surrogate: SQLite takes any bytes, MariaDB's utf8mb4 takes these. PostgreSQL takes none.
@pytest.mark.parametrize(
    ("column", "content", "code"),
    [
        ("sPayload", b'{"note": "\xed\xa0\x80"}', C.PAYLOAD_INVALID),
        ("sTargetFormId", b"\xed\xa0\x80", C.NOT_FOUND),
    ],
)
def test_one_row_of_broken_text_ends_alone(world: World, column: str, content: bytes, code: C) -> None:
    before, broken, after = (world.foreign(sPayload='{"steps": []}') for _ in range(3))
    if world.kind == "postgresql":
        with pytest.raises(DBAPIError):
            break_text(world, broken, column, content)
        return
    break_text(world, broken, column, content)
    done = world.settle(before, broken, after)
    assert [operation.status_code for operation in (done[0], done[2])] == [C.EXECUTED, C.EXECUTED]
    assert done[1].status_code is code
    assert done[1].status == Status.FAIL
    assert done[1].error_message
    world.oracle.verdict().require_sound()
