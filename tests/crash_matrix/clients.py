"""What runs in client and migration processes of its own (see ``tests.support.forked``)."""

from __future__ import annotations

import json
from pathlib import Path

from migrations import run
from staging.bootstrap import open_services
from staging.domain.identity import Actor, ActorKind, Tenant
from tests.support.processes import settings_from

PERSON = Actor(Tenant("B001", "S01"), "u-zhao", ActorKind.PERSON)


def confirm(env: dict[str, str], preparation_id: str, told: str) -> None:
    """Confirm as a person; the file ``told`` gets the ids, once the client has heard of them."""
    with open_services(settings_from(env)) as services:
        ids = [o.id for o in services.confirm.confirm(PERSON, preparation_id)]
    Path(told).write_text(json.dumps(ids), encoding="ascii")


def heard(told: Path) -> list[str]:
    """What a client of ``confirm`` was told."""
    return list(json.loads(told.read_text(encoding="ascii")))


def cancel(env: dict[str, str], op_id: str) -> None:
    """Cancel it as its maker; a refusal ends the process with an error."""
    with open_services(settings_from(env)) as services:
        services.control.cancel(PERSON, op_id)


def upgrade(url: str) -> None:
    """Bring the queue to the newest revision."""
    run.upgrade(url, run.Tree.QUEUE)
