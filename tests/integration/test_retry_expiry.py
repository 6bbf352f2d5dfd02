"""Retrying what has expired meanwhile: the maker's retry is their yes anew, and nobody else can give it."""

from __future__ import annotations

import pytest

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode as C
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind
from staging.services.control import ControlService
from staging.storage.dialect import db_now_plus
from tests.support.queue_rows import TENANT
from tests.support.world import PERSON, World
from tests.support.world_fixtures import only

pytestmark = only(lambda kind, shared: shared)
OPERATOR = Actor(TENANT, "ops", ActorKind.OPERATOR)


@pytest.fixture
def control(world: World) -> ControlService:
    return ControlService(world.store, world.adapter, world.teller)


def failed(world: World, expires_s: float) -> str:
    """An operation at 500 that would succeed now; ``expires_s`` from now, negative: over."""
    op_id = world.stage()
    world.set([op_id], sStatus="fail", iStatusCode=500, tExpireAt=db_now_plus(expires_s))
    return op_id


def test_the_makers_retry_outlives_an_expiry_that_is_over(world: World, control: ControlService) -> None:
    op_id = failed(world, -60)
    assert control.retry(PERSON, op_id).expires_at is None
    (done,) = world.settle(op_id)
    assert (done.status_code, world.effects(op_id)) == (C.EXECUTED, 1)


def test_an_expiry_still_ahead_stays(world: World, control: ControlService) -> None:
    op_id = failed(world, 600)
    before = world.read(op_id).expires_at
    assert before is not None
    assert control.retry(OPERATOR, op_id).expires_at == before


def test_an_operator_cannot_give_the_makers_yes_anew(world: World, control: ControlService) -> None:
    op_id = failed(world, -60)
    before = world.read(op_id)
    with pytest.raises(Refused) as refusal:
        control.retry(OPERATOR, op_id)
    assert refusal.value.code is ErrorCode.EXPIRED
    assert world.read(op_id) == before
    assert control.retry(PERSON, op_id).status_code is C.SUBMITTED
