"""The oracle sees each kind of damage; a verdict of "sound" means something only because of this."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from staging.storage.dialect import db_now
from staging.storage.tables import audit_log, op_event, op_queue
from tests.support.effects_adapter import effects
from tests.support.world import World
from tests.support.world_fixtures import only
from workers.erp.tables import op_ledger

pytestmark = only(lambda kind, shared: kind == "sqlite" and shared)
q, e = op_queue.c, op_event.c


def _lose_the_row(connection: Connection, op_id: str) -> None:
    connection.execute(delete(op_queue).where(q.sId == op_id))


def _take_effect_again(connection: Connection, op_id: str) -> None:
    again = select(effects.c.sOpId, effects.c.sKey, effects.c.sNote, effects.c.iPid, db_now()).where(
        effects.c.sOpId == op_id
    )
    connection.execute(insert(effects).from_select(["sOpId", "sKey", "sNote", "iPid", "tAt"], again))


def _undo_the_effect(connection: Connection, op_id: str) -> None:
    connection.execute(delete(effects).where(effects.c.sOpId == op_id))


def _drop_an_event(connection: Connection, op_id: str) -> None:
    connection.execute(delete(op_event).where(e.sOpId == op_id, e.iSeq == 2))


def _invent_a_code(connection: Connection, op_id: str) -> None:
    connection.execute(update(op_queue).where(q.sId == op_id).values(sStatus="fail", iStatusCode=422))


def _make_an_illegal_move(connection: Connection, op_id: str) -> None:
    connection.execute(update(op_event).where(e.sOpId == op_id, e.iSeq == 2).values(iStatusCode=102))


def _leave_a_lease(connection: Connection, op_id: str) -> None:
    connection.execute(update(op_queue).where(q.sId == op_id).values(sLeaseToken="left"))


def _try_too_often(connection: Connection, op_id: str) -> None:
    connection.execute(update(op_queue).where(q.sId == op_id).values(iAttempt=99))


def _forget_the_ledger(connection: Connection, op_id: str) -> None:
    connection.execute(delete(op_ledger).where(op_ledger.c.sOpId == op_id))


def _never_end(connection: Connection, op_id: str) -> None:
    connection.execute(update(op_queue).where(q.sId == op_id).values(sStatus="pending", iStatusCode=101))


def _forge_the_audit(connection: Connection, op_id: str) -> None:
    connection.execute(update(audit_log).where(audit_log.c.sOpId == op_id).values(sAction="nothing"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_lose_the_row, "accepted, and lost"),
        (_take_effect_again, "2 effects"),
        (_undo_the_effect, "0 effects"),
        (_drop_an_event, "events are"),
        (_invent_a_code, "not executed, and yet 1 effects"),
        (_make_an_illegal_move, "no legal move"),
        (_leave_a_lease, "holds a lease"),
        (_try_too_often, "attempt 99 of 3"),
        (_forget_the_ledger, "ledger names None"),
        (_never_end, "has not come to an end"),
        (_forge_the_audit, "audit chain"),
    ],
)
def test_damage_of_every_kind_is_seen(world: World, damage: object, said: str) -> None:
    op_id, other = world.stage(), world.stage()
    world.run(op_id, other)
    world.oracle.verdict().require_sound()
    with world.queue.begin() as connection:
        damage(connection, op_id)  # type: ignore[operator]
    with pytest.raises(AssertionError, match=said):
        world.oracle.verdict().require_sound()


def test_an_effect_of_an_operation_nobody_accepted_is_seen(world: World) -> None:
    op_id = world.stage()
    world.run(op_id)
    world.oracle.forget()
    assert any("nobody had accepted" in problem for problem in world.oracle.verdict().problems)
