"""Places where a test can make a process die (RELIABILITY C3). Nothing but an empty function unless armed at start.

``OPSTAGE_FAILPOINTS="W5:kill"``: at window W5 do ``kill`` (SIGKILL this process), ``kill-main`` (SIGKILL the
worker's main process), ``quit-main`` (SIGQUIT it) or ``stop`` (SIGSTOP this process).
``OPSTAGE_FAILPOINT_DIR`` makes each fire once: the first to create ``<dir>/<window>`` does it.
``OPSTAGE_FAILPOINT_OP`` limits it to one operation id.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_ARMED = dict(
    part.split(":", 1) for part in os.environ.get("OPSTAGE_FAILPOINTS", "").split(";") if ":" in part
)
_ONCE_DIR = os.environ.get("OPSTAGE_FAILPOINT_DIR", "")
_ONLY_OP = os.environ.get("OPSTAGE_FAILPOINT_OP", "")


def _first_here(window: str) -> bool:
    if not _ONCE_DIR:
        return True
    try:
        Path(_ONCE_DIR, window).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _armed(window: str, op_id: str = "") -> None:
    action = _ARMED.get(window)
    if action is None or (_ONLY_OP and op_id != _ONLY_OP) or not _first_here(window):
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "kill-main":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    elif action == "quit-main":
        os.kill(os.getppid(), signal.SIGQUIT)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        raise ValueError(f"unknown failpoint action {action!r}")


def _nothing(window: str, op_id: str = "") -> None:
    """Not armed."""


reached = _armed if _ARMED else _nothing
