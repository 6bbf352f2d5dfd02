"""The test's end of ``OPSTAGE_FAILPOINT_HOLD``: which window is watched, who has come there, who may go on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tests.support.processes import gone
from tests.support.waiting import wait_until


class Watch:
    """``folder`` is what the processes' variable names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def arm(self, *windows: str) -> None:
        """From now on whoever comes to one of these waits there; to none of them where none is named."""
        new = self.folder / "arming"
        new.write_text(" ".join(windows), encoding="ascii")
        os.replace(new, self.folder / "armed")  # noqa: PTH105 - the atomic one, by its name

    def at(self, window: str) -> dict[str, int]:
        """Operation → pid of whoever has ever waited there with it."""
        found = self.folder.glob(f"{window}.*")
        return {mark.name.partition(".")[2]: int(mark.read_text(encoding="ascii")) for mark in found}

    def let_go(self, pids: Iterable[int]) -> None:
        """They go on, at once or when they are awake again."""
        for pid in set(pids):
            (self.folder / f"go.{pid}").touch()

    def wait_gone_on(self, pids: Iterable[int], timeout_s: float = 20.0) -> None:
        """They have taken notice of it, or died."""
        wait_until(lambda: not any(map(self.holds, pids)), timeout_s, "who was released goes on")

    def holds(self, pid: int) -> bool:
        """It lives and waits at some window."""
        return (self.folder / f"held.{pid}").exists() and not gone(pid)
