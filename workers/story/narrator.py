"""Tells the story in the reader's language and stops it at the first thing that is not as it should be."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from staging.contracts.preparation import ChildSection, FieldChange, Preview

T = TypeVar("T")


class StoryFailed(Exception):
    """A step was not verified."""


class Narrator:
    """Output of several threads, line by line. ``locale`` is "zh" or "en"."""

    def __init__(self, locale: str) -> None:
        self.locale = locale
        self._console = Console(highlight=False, soft_wrap=True)
        self._lock = threading.Lock()
        self._step = 0
        self.checks = 0

    def pick(self, zh: str, en: str) -> str:
        return zh if self.locale == "zh" else en

    def step(self, zh: str, en: str) -> None:
        """A new step."""
        self._step += 1
        self._print(f"\n[bold]{self._step}. {escape(self.pick(zh, en))}[/bold]")

    def say(self, zh: str, en: str) -> None:
        self._print("   " + escape(self.pick(zh, en)))

    def heard(self, line: str) -> None:
        """A pub/sub message as it arrives."""
        self._print(f"   [cyan]◀ {escape(line)}[/cyan]")

    def check(self, zh: str, en: str, holds: bool, found: object = "") -> None:
        """Something verified; ends the story where it does not hold."""
        if not holds:
            self.fail(zh, en, found)
        self.checks += 1
        self._print(f"   [green]✔ {escape(self.pick(zh, en))}[/green]")

    def fail(self, zh: str, en: str, found: object = "") -> NoReturn:
        self._print(f"   [red]✘ {escape(self.pick(zh, en))}[/red]  {escape(str(found))}")
        raise StoryFailed(self.pick(zh, en))

    def refused(self, call: Callable[[], T], error: type[Exception]) -> Exception:
        """Run what must be refused and return the refusal."""
        refusal: Exception | None = None
        value: object = None
        try:
            value = call()
        except error as raised:
            refusal = raised
        if refusal is None:
            self.fail("本应被拒绝", "this should have been refused", value)
        return refusal

    def preview(self, preview: Preview) -> None:
        """The card as a person sees it."""
        table = Table(title=escape(preview.title), title_justify="left", show_lines=False)
        for column in (self.pick("字段", "field"), self.pick("原值", "old"), self.pick("新值", "new")):
            table.add_column(escape(column))
        self._rows(table, preview.fields, "")
        for section in preview.children:
            self._section(table, section, "")
        self._rows(table, preview.totals, "")
        with self._lock:
            self._console.print(table)
        for warning in preview.warnings:
            self._print(f"   [yellow]⚠ {escape(warning.message)}[/yellow]")

    def _section(self, table: Table, section: ChildSection, indent: str) -> None:
        for number, line in enumerate(section.lines, start=1):
            table.add_row(f"{indent}{escape(section.label)} {number}", "", "")
            self._rows(table, line.fields, indent + "  ")
            for below in line.children:
                self._section(table, below, indent + "  ")

    @staticmethod
    def _rows(table: Table, fields: list[FieldChange], indent: str) -> None:
        for change in fields:
            if change.new_text or change.old_text:
                table.add_row(indent + escape(change.label), escape(change.old_text), escape(change.new_text))

    def _print(self, line: str) -> None:
        with self._lock:
            self._console.print(line)
            sys.stdout.flush()
