"""How long to wait before the next attempt, and whether there is one. All times in seconds."""

from __future__ import annotations

from random import Random, SystemRandom

# Not a seeded generator: forked workers would inherit its state and come back all at the same moment.
_RANDOM = SystemRandom()
_MAX_DOUBLINGS = 62  # any cap is reached long before, and a float does not overflow


def backoff_s(attempt: int, *, base_s: float, cap_s: float, random: Random = _RANDOM) -> float:
    """Seconds to wait after ``attempt`` (1 is the first) failed.

    Evenly spread between half of ``base_s`` and ``base_s`` doubled with each attempt, never above ``cap_s``. The same
    ``random`` source gives the same answer. An attempt below 1 (a row may hold anything) counts as 1.
    """
    ceiling_s = min(cap_s, base_s * 2.0 ** min(max(attempt - 1, 0), _MAX_DOUBLINGS))
    return random.uniform(min(base_s / 2, ceiling_s), ceiling_s)


def attempts_left(attempt: int, max_attempts: int) -> int:
    """How many attempts may still start after ``attempt`` of them did; 0 where they are used up."""
    return max(0, max_attempts - attempt)
