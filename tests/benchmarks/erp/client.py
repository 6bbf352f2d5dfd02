"""A person's confirms, one at a time, each until its end is heard: ``client COMMAND COUNT``, "form" for the form."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from staging.bootstrap import open_services
from staging.contracts.preparation import PrepareRequest
from staging.domain.identity import Actor, Tenant
from staging.messaging.redis_notifier import user_channel
from tests.benchmarks.loops.wire import open_redis
from tests.benchmarks.reference.orders import SUBSIDIARY, USER, brands_of, payload_of

_LONGEST_S = 60.0


FORM = "form"


def asked_for(payload: dict[str, Any], command: str = FORM) -> PrepareRequest:
    """What an agent sends for this order: no computed field in a form's payload."""
    if command != FORM:
        return PrepareRequest(command_type=command, payload=payload)
    given = {k: v for k, v in payload.items() if k != "total"}
    given["lines"] = [{k: v for k, v in line.items() if k != "amount"} for line in payload["lines"]]
    return PrepareRequest(form_id="po", op_type="create", payload=given)


def waits_ms(count: int, command: str, tenants: int = 20) -> list[float]:
    """From the confirm call to the message of the operation's end at the user's subscriber, milliseconds."""
    pubsub = open_redis().pubsub()
    pubsub.subscribe(*(user_channel(brands_of(n), SUBSIDIARY, USER) for n in range(tenants)))
    for _ in range(tenants):
        pubsub.get_message(timeout=5)
    found = []
    with open_services() as services:
        for number in range(count):
            actor = Actor(Tenant(brands_of(number % tenants), SUBSIDIARY), USER)
            preparation = services.prepare.prepare(actor, asked_for(payload_of(number), command))
            start = time.perf_counter()
            (operation,) = services.confirm.confirm(actor, preparation.preparation_id)
            while not _ended(pubsub.get_message(timeout=30), operation.id):
                if time.perf_counter() - start > _LONGEST_S:
                    raise SystemExit(f"{operation.id} did not end within a minute")
            found.append((time.perf_counter() - start) * 1000)
            time.sleep(0.005)
    return found


def _ended(message: Any, op_id: str) -> bool:
    if not message or message["type"] != "message":
        return False
    said = json.loads(message["data"])
    if said["opId"] == op_id and said["status"] == "fail":
        raise SystemExit(f"{op_id} failed: {said}")
    return bool(said["opId"] == op_id and said["status"] == "success")


if __name__ == "__main__":
    print(json.dumps(waits_ms(int(sys.argv[2]), sys.argv[1])))
