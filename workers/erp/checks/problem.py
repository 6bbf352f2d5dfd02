"""What is wrong with a catalogue, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Problem:
    """``path`` in the YAML, e.g. ``forms[quotation].fields[customer].reference.form``; the text in both languages.

    A ``warning`` works, but not as a careful reader would expect.
    """

    path: str
    zh: str
    en: str
    severity: Literal["error", "warning"] = "error"

    @property
    def where(self) -> str:
        return self.path

    def message(self, locale: str) -> str:
        return self.zh if locale == "zh" else self.en

    def text(self, locale: str) -> str:
        """One line: where, and what."""
        return f"{self.path}: {self.message(locale)}"


class CatalogueInvalid(ValueError):
    """The catalogue cannot be used. ``problems`` has every reason found."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source, self.problems = source, tuple(problems)
        super().__init__(self.text("en"))

    def text(self, locale: str) -> str:
        head = (
            f"{self.source}: 表单目录不可用" if locale == "zh" else f"{self.source}: not a usable catalogue"
        )
        return "\n  ".join([head, *(problem.text(locale) for problem in self.problems)])
