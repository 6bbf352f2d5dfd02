"""The cells of the matrix, and which of them cannot exist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from tests.databases import KINDS

WINDOWS = {
    "W0": "before the row's commit at confirm",
    "W1": "row committed, not published",
    "W2": "published, not claimed",
    "W3": "claim sent, not committed",
    "W4": "claimed, before BEGIN in the ERP",
    "W5": "in the ERP's transaction, before the key row",
    "W6": "after the key row and the change",
    "W7": "COMMIT sent, its reply not acted upon",
    "W8": "committed, status not written",
    "W9": "status written, nobody told",
    "W10": "all told, task not ended",
    "W11": "during the renewal of leases",
    "W12": "during a rescue",
    "W13": "during a cancel",
    "W14": "during a migration",
}
SIGNALS = {
    "kill": "SIGKILL of the child",
    "kill-main": "SIGKILL of the main process",
    "quit": "SIGQUIT",
    "stop": "SIGSTOP past the lease, then SIGCONT",
}
MODES = ("shared", "separate")
OPERATIONS = {
    "create": "erp.quotation.create, with parts and price tiers",
    "update": "erp.quotation.update",
    "examine": "erp.quotation.examine",
    "adjust": "erp.stock_adjustment.create",
}
CLIENT = ("W0", "W1", "W13")
"""Windows in the process of whoever confirms or cancels."""


@dataclass(frozen=True, slots=True)
class Place:
    """A database, and whether queue and ERP share it."""

    kind: str
    mode: str

    @property
    def shared(self) -> bool:
        return self.mode == "shared"

    def __str__(self) -> str:
        return f"{self.kind}, {self.mode}"


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the matrix is to run; empty means all. ``batch``: the four operations reach the worker as one batch."""

    windows: tuple[str, ...] = tuple(WINDOWS)
    signals: tuple[str, ...] = tuple(SIGNALS)
    kinds: tuple[str, ...] = KINDS
    modes: tuple[str, ...] = MODES
    operations: tuple[str, ...] = tuple(OPERATIONS)
    repeat: int = 1
    batch: bool = False
    settings: dict[str, str] = field(default_factory=dict)

    def places(self) -> Iterator[tuple[Place, str]]:
        """Each (place, signal): one set of processes."""
        for signal, kind, mode in product(self.signals, self.kinds, self.modes):
            yield Place(kind, mode), signal


@dataclass(slots=True)
class Run:
    """One operation at one cell. ``fired``: what was seen when the signal struck, empty where it did not.

    ``problems`` empty: exactly one effect or one explicit terminal failure, and the books are straight. ``missed``: it
    came past its window before anything could strike; it must be sound all the same, but another run stands for it.
    """

    window: str
    signal: str
    place: Place
    operation: str
    op_id: str = ""
    fired: str = ""
    code: int = 0
    effects: int = 0
    missed: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if self.problems:
            return "BROKEN"
        return "one effect" if self.effects == 1 else f"ended with {self.code}, no effect"


def absent(window: str, signal: str, place: Place, *, batch: bool = False) -> str:
    """Why there is no such cell; empty where there is. ``batch``: its operations share a commit where they can."""
    if window == "W11" and batch and place.shared:
        return "what shares a commit does not wait for its turn: no lease is renewed"
    if window == "W9" and place.shared:
        return "status and effect are one commit: what follows it is W8"
    if signal == "kill-main" and (window in CLIENT or window == "W14"):
        who = "a migration" if window == "W14" else "a client"
        return f"{who} is one process: the same as SIGKILL of the child"
    return ""
