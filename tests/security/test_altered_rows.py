"""D3, D4: what is executed is what a person confirmed; a row altered in the database since is refused (hash, seal)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from staging.contracts.status import StatusCode as C
from staging.domain.canonical import payload_hash
from tests.support.effects_adapter import APPROVED_FORM
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only

pytestmark = only(lambda kind, shared: shared)

_OTHER = {"steps": [], "note": "820000"}
_CHANGES: dict[str, dict[str, Any]] = {
    "payload": {"sPayload": json.dumps(_OTHER)},
    "payload and hash": {"sPayload": json.dumps(_OTHER), "sPayloadHash": payload_hash(_OTHER)},
    "payload, hash and no seal": {
        "sPayload": json.dumps(_OTHER),
        "sPayloadHash": payload_hash(_OTHER),
        "sSeal": "",
    },
    "maker": {"sMakePerson": "u-boss"},
    "tenant": {"sBrandsId": "B002"},
    "target": {"sTargetBillId": "another"},
    "form": {"sTargetFormId": APPROVED_FORM},
    "type": {"sOpType": "delete"},
    "command": {"sCommandType": "test.effects.delete"},
    "key": {"sIdempotencyKey": "another"},
    "version": {"sTargetVersion": "sha256:0"},
    "pins": {"jPins": '{"price": "1"}'},
    "source": {"sSourceRef": '{"record": "1"}'},
    "duplicate": {"bAllowDuplicate": 1},
    "confirmer": {"sConfirmPerson": "u-boss"},
    "seal": {"sSeal": "hmac-sha256:" + "0" * 64},
    "seal beyond ASCII": {"sSeal": "封签"},
}


@pytest.mark.parametrize("changed", _CHANGES)
def test_a_row_altered_after_the_confirm_is_refused_and_does_nothing(world: World, changed: str) -> None:
    """D3, D4: 82,000 was confirmed, 820,000 is in the row."""
    op_id = world.stage(note="82000")
    world.set([op_id], **_CHANGES[changed])
    assert world.run(op_id) == 1
    refused = world.read(op_id)
    assert (refused.status_code, refused.error_code) == (C.CONFLICT, "version_conflict")
    assert world.effects(op_id) == 0


def test_an_untouched_row_is_executed(world: World) -> None:
    """D4: the guard is about what changed."""
    op_id = world.stage(note="82000")
    world.run(op_id)
    assert (world.code(op_id), world.effects(op_id)) == (C.EXECUTED, 1)


def test_a_confirm_cannot_be_moved_to_another_operation(world: World) -> None:
    """D4: the seal of A, put on B together with all that was confirmed, does not fit: it says whose it is."""
    approved, other = world.stage(note="82000"), world.stage(note="1")
    columns = ("seal", "payload_json", "payload_hash", "pins_json", "preparation_id")
    names = ("sSeal", "sPayload", "sPayloadHash", "jPins", "sPreparationId")
    said = world.read(approved)
    world.set([other], **{name: getattr(said, column) for name, column in zip(names, columns, strict=True)})
    world.run(other)
    assert (world.code(other), world.effects(other)) == (C.CONFLICT, 0)
    world.run(approved)
    assert (world.code(approved), world.effects(approved)) == (C.EXECUTED, 1)


@pytest.mark.parametrize("sealed", [True, False])
def test_what_nobody_approved_is_not_executed_whatever_its_code_says(world: World, sealed: bool) -> None:
    """D1, D8: 104 was turned into 100 behind our back."""
    if sealed:
        op_id = world.stage(needs_approval=True, code=C.WAITING_APPROVAL)
    else:
        op_id = world.foreign(sTargetFormId=APPROVED_FORM)
        world.run(op_id)
    assert world.code(op_id) is C.WAITING_APPROVAL
    world.set([op_id], iStatusCode=100)
    world.run(op_id)
    assert (world.code(op_id), world.effects(op_id)) == (C.FORBIDDEN, 0)


def test_a_worker_without_the_key_still_refuses_what_does_not_fit_its_hash(make_world: MakeWorld) -> None:
    """D4: no key, no seal; the hash alone holds."""
    world = make_world(seal_key="")
    op_id = world.stage(note="82000")
    world.set([op_id], sPayload=json.dumps(_OTHER))
    world.run(op_id)
    assert (world.code(op_id), world.effects(op_id)) == (C.CONFLICT, 0)
