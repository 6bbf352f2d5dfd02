"""Three safeguards, each taken out, and the faults under which that shows within seconds: torture has to fail."""

from __future__ import annotations

from dataclasses import dataclass

from tests.torture.scene import Options


@dataclass(frozen=True)
class Proof:
    """``seen``: how a broken promise may end that nothing but this safeguard's absence explains."""

    options: Options
    seen: tuple[str, ...]


def _proof(kind: str, plant: str, windows: str, *seen: str, **settings: str) -> Proof:
    quiet = Options(
        kind, shared=False, seconds=60, seed=3, settings=settings, plant=plant, windows=windows,
        kinds=("redis-flushall",), plain=True, http=False, beats=1,
    )  # fmt: skip
    return Proof(quiet, seen)


PROOFS = {
    # Killed after the commit: a second execution follows, or with no attempt left a failure, since nothing says that
    # there was a first one.
    "ledger": _proof("sqlite", "ledger", "W8:kill", ": 2 effects", ": fail, 1 effects"),
    # Frozen past its lease with an operation in hand, which is written off; then it goes on, and commits. Not at W4 as
    # well: what has not begun goes back, and whoever is frozen second would be woken before its own lease has lapsed.
    "fencing": _proof("postgresql", "fencing", "W5:stop", ": fail, 1 effects", OPSTAGE_MAX_ATTEMPTS="1"),
    # Killed between the status and the commit that should have come first.
    "order": _proof("sqlite", "order", "W6:kill", ": success, 0 effects"),
}
