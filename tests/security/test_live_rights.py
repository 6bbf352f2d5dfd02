"""D4, D5: a right is needed when it is used, not only when asked for; a yes is for one thing, once, and in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import delete, insert, select, update

from staging.domain.identity import new_id
from staging.storage.dialect import db_now_plus
from staging.storage.tables import op_queue
from tests.integration.api.test_confirm import confirm_path, customers, rows_of
from tests.support.api import B001, B002, OPERATOR, SERVICE, Door
from tests.support.demo_requests import new_customer, new_supplier, word
from workers.erp.demo.schema import system


@contextmanager
def revoked(door: Door, user: str, form: str, op: str) -> Iterator[None]:
    """The user's grant is gone for a while. The user holds it by name, not by "*"."""
    g = system.grant.c
    named = (g.sBrandsId == B001.brands_id, g.sUserId == user, g.sFormId == form, g.sOpType == op)
    engine = door.services.databases.store.engine
    with engine.begin() as connection:
        kept = [dict(row) for row in connection.execute(select(system.grant).where(*named)).mappings()]
        assert kept
        connection.execute(delete(system.grant).where(*named))
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(insert(system.grant), kept)


def test_a_grant_taken_back_after_prepare_stops_the_confirm(door: Door) -> None:
    """D4, D5: authorised at stage, and again at confirm."""
    name = word()
    prepared = door.prepare("u-lin", **new_customer(name=name))
    with revoked(door, "u-lin", "customer", "create"):
        refused = door.as_("u-lin").post(confirm_path(prepared), {}, expect=403)
        assert refused["error"]["code"] == "forbidden"
        assert rows_of(door, prepared) == 0
    (operation,) = door.as_("u-lin").post(confirm_path(prepared), {}, expect=202)["operations"]
    door.execute(operation["id"])
    assert customers(door, name) == 1


def test_a_grant_taken_back_after_the_confirm_stops_the_execution(door: Door) -> None:
    """D4, D5: and again at execution."""
    name = word()
    op_id = door.stage("u-lin", **new_customer(name=name))["id"]
    with revoked(door, "u-lin", "customer", "create"):
        door.execute(op_id)
    done = door.as_("u-lin").get(f"/v1/operations/{op_id}")
    assert (done["code"], done["error"]["code"], customers(door, name)) == (401, "forbidden", 0)
    door.execute(op_id)
    assert customers(door, name) == 0  # final


def test_an_approver_whose_grant_was_taken_back_cannot_approve(door: Door) -> None:
    """D1, D4."""
    op_id = door.stage("u-chen", **new_supplier())["id"]
    with revoked(door, "u-qian", "supplier", "approve"):
        door.as_("u-qian").post(f"/v1/operations/{op_id}/approve", expect=404)
    assert door.as_("u-chen").get(f"/v1/operations/{op_id}")["code"] == 104
    assert door.as_("u-qian").post(f"/v1/operations/{op_id}/approve")["code"] == 100


def test_what_has_expired_is_not_executed(door: Door) -> None:
    """D4: the time limit holds at execution."""
    name = word()
    op_id = door.stage("u-lin", **new_customer(name=name), expiresIn=60)["id"]
    with door.services.databases.store.engine.begin() as connection:
        late = update(op_queue).where(op_queue.c.sId == op_id).values(tExpireAt=db_now_plus(-1))
        connection.execute(late)
    door.execute(op_id)
    assert customers(door, name) == 0
    assert door.as_("u-lin").get(f"/v1/operations/{op_id}")["attempt"] == 0


def test_a_yes_to_one_preparation_is_none_to_another(door: Door) -> None:
    """D4: swapped ids confirm nothing."""
    one, other = (door.prepare("u-lin", **new_customer()) for _ in range(2))
    person = door.as_("u-lin")
    (operation,) = person.post(confirm_path(one), {}, expect=202)["operations"]
    for wrong in (operation["id"], one["snapshotHash"], new_id(), f"{one['preparationId']}.1"):
        person.post(f"/v1/preparations/{wrong}/confirm", {}, expect=404)
    assert rows_of(door, other) == 0
    for _ in range(3):
        (again,) = person.post(confirm_path(one), {}, expect=202)["operations"]
        assert again["id"] == operation["id"]
    assert (rows_of(door, one), rows_of(door, other)) == (1, 0)


def test_nobody_else_can_use_a_persons_preparation(door: Door) -> None:
    """D4, D5: a colleague, the same name in another company, an operator, the ERP."""
    prepared = door.prepare("u-lin", **new_customer())
    for caller, status in (
        (door.as_("u-zhao"), 404),
        (door.as_("u-lin", tenant=B002), 404),
        (door.as_("u-lin", OPERATOR), 403),
        (door.as_("u-lin", SERVICE), 403),
    ):
        caller.post(confirm_path(prepared), {}, expect=status)
    assert rows_of(door, prepared) == 0
