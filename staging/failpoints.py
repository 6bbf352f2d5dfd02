"""Places where a test can stop or end a process (RELIABILITY C3). An empty function unless armed when it starts.

W0 before the row's commit at confirm · W1 row committed, not published · W2 published, not claimed · W3 claim sent, not
committed · W4 claimed, before BEGIN in the ERP · W5 inside the ERP's transaction, before the key row · W6 after the key
row and the change · W7 COMMIT sent, its reply not acted upon · W8 committed, status not written (one commit where they
share a database: written) · W9 status written, nobody told · W10 all told, task not ended · W11 during the renewal of
leases · W12 during a rescue · W13 during a cancel or another word on an operation · W14 during a migration.

``OPSTAGE_FAILPOINTS="W5:kill"``: at window W5 do ``kill`` (SIGKILL this process), ``kill-main`` (SIGKILL the
worker's main process), ``quit-main`` (SIGQUIT it) or ``stop`` (SIGSTOP this process).
``OPSTAGE_FAILPOINT_DIR`` makes each fire once: the first to create ``<dir>/<window>`` does it.
``OPSTAGE_FAILPOINT_OP`` limits it to one operation id.

``OPSTAGE_FAILPOINT_HOLD=<dir>``: whoever comes to a window that the file ``<dir>/armed`` names at that moment, with an
operation that has not been held there yet, leaves its pid in ``<dir>/<window>.<operation>`` and waits, while there is
``<dir>/held.<pid>``, until ``<dir>/go.<pid>`` appears. What strikes it meanwhile is the test's choice. ``W2*`` in that
file is a barrier: everybody who comes there, as often as they come, waits as long as the file says so.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_ARMED = dict(
    part.split(":", 1) for part in os.environ.get("OPSTAGE_FAILPOINTS", "").split(";") if ":" in part
)
_ONCE_DIR = os.environ.get("OPSTAGE_FAILPOINT_DIR", "")
_ONLY_OP = os.environ.get("OPSTAGE_FAILPOINT_OP", "")
_HOLD_DIR = os.environ.get("OPSTAGE_FAILPOINT_HOLD", "")
_POLL_S = 0.01


def _first_here(window: str) -> bool:
    if not _ONCE_DIR:
        return True
    try:
        Path(_ONCE_DIR, window).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _armed(window: str, *op_ids: str) -> None:
    if not op_ids:
        return  # nothing was claimed, nothing due: no operation is in danger
    if _HOLD_DIR:
        _hold(Path(_HOLD_DIR), window, op_ids)
    action = _ARMED.get(window)
    if action is None or (_ONLY_OP and _ONLY_OP not in op_ids) or not _first_here(window):
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


def _hold(folder: Path, window: str, op_ids: tuple[str, ...]) -> None:
    barrier = f"{window}*"
    names = _names(folder)
    if window not in names and barrier not in names:
        return
    own, held, go = (folder / f"{what}.{os.getpid()}" for what in ("pid", "held", "go"))
    go.unlink(missing_ok=True)  # meant for an earlier stay
    if not own.exists():  # the marks are further names of this file
        own.write_text(str(os.getpid()), encoding="ascii")
    held.touch()
    try:
        new = [op_id for op_id in op_ids if _left_at(folder / f"{window}.{op_id}", own)]
        if barrier in names:
            while barrier in _names(folder):
                time.sleep(_POLL_S)
        elif new:
            while not go.exists():
                time.sleep(_POLL_S)
    finally:  # a time limit or a shutdown may strike here
        held.unlink()


def _names(folder: Path) -> list[str]:
    try:
        return (folder / "armed").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


def _left_at(mark: Path, content: Path) -> bool:
    """Make ``mark``, complete from the first moment; False if it is there already."""
    try:
        os.link(content, mark)
    except FileExistsError:
        return False
    return True


def _nothing(window: str, *op_ids: str) -> None:
    """Not armed. ``op_ids``: the operations concerned; W14 has none and says "migration"."""


reached = _armed if _ARMED or _HOLD_DIR else _nothing
