"""What is going to be broken, when: drawn from a seed, so that a run that failed can be run again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

WORKERS = ("worker-kill9", "worker-sigterm", "worker-sigquit", "worker-stop", "child-kill9", "child-stop")
DOORS = ("api-kill9", "api-sigterm", "api-stop", "beat-kill9", "beat-stop")
REDIS = (
    *("redis-kill9", "redis-flap", "redis-flushall", "redis-client-pause", "redis-stop"),
    *("redis-full-noeviction", "redis-full-lru"),
)
DATABASE = {
    "postgresql": ("db-terminate-backends", "db-immediate-stop", "db-kill9"),
    "mariadb": ("db-terminate-backends", "db-kill9"),
    "sqlite": ("db-write-lock",),
}
# The pool's children are where operations run: they are hit more often than anything else.
_WEIGHT = {
    "child-kill9": 3,
    "child-stop": 2,
    "worker-kill9": 2,
    "db-write-lock": 4,
    "db-terminate-backends": 2,
}
_FIRST_S, _PAUSE_S, _HOLD_S = 2.0, (1.0, 4.5), (0.3, 2.5)
# Windows of workers.failpoints that a worker passes while it executes, and what may happen to it there.
_WINDOWS = ("W3", "W4", "W5", "W6", "W7", "W8", "W9", "W10", "W11", "W12")
_API_WINDOWS = ("W0", "W1", "W13")
_ACTIONS = (*(["kill"] * 4), *(["stop"] * 4), "kill-main", "quit-main")
_ARMED = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """``at_s`` after the start do ``kind`` to the ``pick``-th target; what has a duration lasts ``hold_s``."""

    at_s: float
    kind: str
    pick: int
    hold_s: float


def kinds_of(kind: str) -> tuple[str, ...]:
    """Every fault there is for database ``kind``."""
    return (*WORKERS, *DOORS, *REDIS, *DATABASE[kind])


def make_plan(seed: int, seconds: float, kinds: Sequence[str]) -> list[Fault]:
    """Faults of ``kinds`` over ``seconds``. Drawn like cards: none comes again before all others came."""
    rng = random.Random(f"plan {seed}")
    faults: list[Fault] = []
    deck: list[str] = []
    at_s = _FIRST_S
    while at_s < seconds:
        if not deck:
            deck = [kind for kind in kinds for _ in range(_WEIGHT.get(kind, 1))]
            rng.shuffle(deck)
        faults.append(Fault(round(at_s, 2), deck.pop(), rng.randrange(1000), round(rng.uniform(*_HOLD_S), 2)))
        at_s += rng.uniform(*_PAUSE_S)
    return faults


def failpoints(seed: int, name: str, start: int) -> str:
    """``OPSTAGE_FAILPOINTS`` of the ``start``-th start of worker ``name``: some windows, each to be met once."""
    rng = random.Random(f"failpoints {seed} {name} {start}")
    return ";".join(f"{window}:{rng.choice(_ACTIONS)}" for window in rng.sample(_WINDOWS, _ARMED))


def api_failpoints(seed: int, start: int) -> str:
    """The same for the API: a confirm or a cancel that its process does not survive, or dies in for a while."""
    rng = random.Random(f"api failpoints {seed} {start}")
    return f"{rng.choice(_API_WINDOWS)}:{rng.choice(('kill', 'stop'))}"
