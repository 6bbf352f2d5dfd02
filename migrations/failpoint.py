"""A hook for crash tests: ``OPSTAGE_MIGRATION_KILL_AFTER=n`` kills this process right after its n-th change.

Off unless the variable is set. Counted is every statement that changes the database, in ``steps.run``.
"""

from __future__ import annotations

import itertools
import os
import signal

VARIABLE = "OPSTAGE_MIGRATION_KILL_AFTER"
_changes = itertools.count(1)


def changed() -> None:
    """Count one change; die like a machine that lost power where this is the one asked for."""
    armed = os.environ.get(VARIABLE)
    if armed is not None and next(_changes) == int(armed):
        os.kill(os.getpid(), signal.SIGKILL)
