"""Told to stop, a worker finishes the operation it is at, hands back the rest of its batch and takes up no other.

Celery's warm shutdown waits for running tasks, and a task goes on draining for ``drain_budget_s``. The pool's children
do not hear of the shutdown; they share this one byte with the process that does (``workers.app``), by fork.
"""

from __future__ import annotations

import mmap

# Anonymous and shared: the children of the pool are forked after this module was imported.
_told = mmap.mmap(-1, 1)


def stopping() -> bool:
    return _told[0] != 0


def set_stopping(told: bool) -> None:
    """For this process and all it has forked."""
    _told[0] = told
