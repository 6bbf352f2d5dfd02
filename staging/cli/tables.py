"""Tables for people: they read well without colour, and in a pipe nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich is loaded by the commands that draw
    from rich.console import Console


def console(plain_width: int) -> Console:
    """Where to draw; ``plain_width`` characters where there is no terminal to ask."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=plain_width)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns side by side, Chinese widths counted right; the last one folds, and on a terminal only."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for name in head:
        table.add_column(escape(name), no_wrap=name != head[-1])
    for row in rows:
        table.add_row(*map(escape, row))
    console(plain_width=1000).print(table)
