"""What ``opstage doctor`` says: one finding per thing looked at, in both languages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from staging.contracts.form import Label


class Level(StrEnum):
    """How much a finding matters; only a problem makes the command fail."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """``service`` and ``check`` are stable ids; ``found`` the value as it is; ``todo`` what to do about it.

    ``unreachable``: the service did not answer at all. No field ever holds a password.
    """

    service: str
    check: str
    level: Level
    what: Label
    found: str | Label
    todo: Label | None = None
    unreachable: bool = False

    def found_text(self, locale: str) -> str:
        return self.found if isinstance(self.found, str) else self.found.text(locale)

    def to_wire(self, locale: str) -> dict[str, Any]:
        """JSON-ready, texts in ``locale``."""
        return {
            "service": self.service,
            "check": self.check,
            "level": self.level.value,
            "what": self.what.text(locale),
            "found": self.found_text(locale),
            "todo": self.todo.text(locale) if self.todo else None,
            "unreachable": self.unreachable,
        }


def t(zh: str, en: str) -> Label:
    """A text in both languages."""
    return Label(zh=zh, en=en)


class Section:
    """Adds findings about one service to ``findings``."""

    def __init__(self, service: str, findings: list[Finding]) -> None:
        self.service = service
        self.findings = findings

    def note(
        self, check: str, what: Label, found: str | Label, level: Level = Level.OK, todo: Label | None = None
    ) -> None:
        """Something seen; ``level`` OK or INFO needs no ``todo``."""
        self.findings.append(Finding(self.service, check, level, what, found, todo))

    def expect(
        self,
        good: bool,
        check: str,
        what: Label,
        found: str | Label,
        todo: Label,
        level: Level = Level.PROBLEM,
    ) -> None:
        """OK where ``good``; else ``level`` with what to do."""
        self.note(check, what, found, Level.OK if good else level, None if good else todo)

    def unreachable(self, what: Label, found: str | Label, todo: Label) -> None:
        self.findings.append(
            Finding(self.service, "reachable", Level.PROBLEM, what, found, todo, unreachable=True)
        )
