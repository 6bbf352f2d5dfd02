"""What the tortured operations do, as steps of ``tests.support.effects_adapter``."""

from __future__ import annotations

import random
from typing import Any

from tests.support.effects_adapter import ROWS

_LAST = " locks "


def plain_payload(rng: random.Random, pace: float = 1.0) -> dict[str, Any]:
    """Something that succeeds if only it is executed."""
    return {"steps": [_sleep(rng, 20, 100, pace)], "note": f"{rng.getrandbits(32):08x}{_LAST}nothing"}


def make_payload(rng: random.Random, pace: float = 1.0) -> dict[str, Any]:
    """``pace`` stretches the time an operation takes, most of which costs no CPU: workers shall have much in hand.

    Mostly something that succeeds; else one that is refused, fails, waits for a lock, or kills its worker.
    """
    steps: list[dict[str, Any]] = []
    locked = ""
    draw = rng.random()
    if draw < 0.40:
        steps.append(_sleep(rng, 20, 250, pace))
    elif draw < 0.60:
        locked = rng.choice(ROWS)
        steps += [{"do": "lock", "row": locked}, {"do": "write"}, _sleep(rng, 5, 60, pace)]
    elif draw < 0.64:
        steps += [{"do": "write"}, _sleep(rng, 300, 1500, pace)]
    elif draw < 0.68:
        steps += [{"do": "write"}, {"do": "refuse", "code": "business_rule"}]
    elif draw < 0.71:
        steps += [{"do": "write"}, {"do": "bug"}]
    elif draw < 0.73:
        steps += [{"do": "write"}, {"do": "clash"}]
    elif draw < 0.76:
        steps += [{"do": "write"}, {"do": "transient"}]
    elif draw < 0.765:
        steps += [{"do": "write"}, {"do": "signal", "name": "SIGKILL"}]
    elif draw < 0.775:
        steps += [{"do": "write"}, {"do": "exit"}]
    return {"steps": steps, "note": f"{rng.getrandbits(32):08x}{_LAST}{locked or 'nothing'}"}


def _sleep(rng: random.Random, least_ms: int, most_ms: int, pace: float) -> dict[str, Any]:
    return {"do": "sleep", "ms": int(rng.randint(least_ms, most_ms) * pace)}


def locked_row(note: str) -> str:
    """The record that an operation with this note changes, if it takes effect; "nothing" for none."""
    return note.rpartition(_LAST)[2]
