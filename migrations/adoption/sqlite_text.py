"""Edit the text of a SQLite ``CREATE TABLE``. What is not edited stays to the letter: checks, collations, comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, text

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | --[^\n]*\n? | /\*.*?\*/ | \w+ | .""",
    re.VERBOSE | re.DOTALL,
)
_CONSTRAINT_WORDS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})
_NOT_NULL = re.compile(r"\bNOT\s+NULL\b", re.IGNORECASE)

_COLLATE = re.compile(r"\bCOLLATE\s+[\"'`\[]?(\w+)[\"'`\]]?", re.IGNORECASE)


@dataclass(frozen=True)
class CreateTable:
    """``head`` up to and with the opening parenthesis, ``items`` between the commas, ``tail`` from the closing one."""

    head: str
    items: tuple[str, ...]
    tail: str

    def __str__(self) -> str:
        return f"{self.head}{','.join(self.items)}{self.tail}"

    @property
    def is_strict(self) -> bool:
        return re.search(r"\bSTRICT\b", self.tail, re.IGNORECASE) is not None

    def with_columns(self, definitions: list[str]) -> CreateTable:
        """Columns go before the first table constraint."""
        at = next((i for i, item in enumerate(self.items) if _is_constraint(item)), len(self.items))
        return replace(self, items=(*self.items[:at], *_lines(definitions), *self.items[at:]))

    def with_constraints(self, definitions: list[str]) -> CreateTable:
        return replace(self, items=(*self.items, *_lines(definitions)))

    def without(self, columns: set[str], constraints: set[str]) -> CreateTable:
        """Without these columns and these named constraints (names compared as SQLite does)."""
        gone_columns, gone_constraints = _folded(columns), _folded(constraints)
        kept = [
            item
            for item in self.items
            if _name(item) not in (gone_constraints if _is_constraint(item) else gone_columns)
        ]
        return replace(self, items=tuple(kept))

    def with_default(self, column: str, sql: str) -> CreateTable:
        return self._edit(column, lambda item: f"{item}\n{_default(sql)}")

    def without_default(self, column: str) -> CreateTable:
        """Takes back what ``with_default`` wrote, nothing else."""
        return self._edit(
            column, lambda item: re.sub(r"\nDEFAULT /\* opstage \*/ .*$", "", item, flags=re.DOTALL)
        )

    def with_null(self, column: str) -> CreateTable:
        return self._edit(column, lambda item: _NOT_NULL.sub("", item, count=1))

    def with_binary(self, column: str) -> CreateTable:
        return self._edit(column, lambda item: _COLLATE.sub("", item))

    def collation(self, column: str) -> str:
        """The collation the column's definition names, in capitals, or ""."""
        for item in self.items:
            if not _is_constraint(item) and _name(item) == column.casefold():
                match = _COLLATE.search(item)
                return match[1].upper() if match else ""
        return ""

    def _edit(self, column: str, change: Callable[[str], str]) -> CreateTable:
        items = tuple(
            change(item) if not _is_constraint(item) and _name(item) == column.casefold() else item
            for item in self.items
        )
        return replace(self, items=items)


def parse(sql: str) -> CreateTable:
    """Split the text of ``sqlite_master``. Raises ValueError where it is no plain CREATE TABLE."""
    depth, start, items = 0, 0, []
    head = tail = ""
    for token in _TOKEN.finditer(sql):
        char = token.group()
        if char == "(":
            depth += 1
            if depth == 1:
                head, start = sql[: token.end()], token.end()
        elif char == ")":
            depth -= 1
            if depth == 0:
                items.append(sql[start : token.start()])
                tail = sql[token.start() :]
                break
        elif char == "," and depth == 1:
            items.append(sql[start : token.start()])
            start = token.end()
    if not head or not tail:
        raise ValueError(f"not a plain CREATE TABLE: {sql[:80]}")
    return CreateTable(head, tuple(items), tail)


def read(connection: Connection, table: str) -> CreateTable:
    """The CREATE TABLE of an existing table."""
    query = text("SELECT sql FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(:table)")
    return parse(connection.execute(query, {"table": table}).scalar_one())


def _words(item: str) -> list[str]:
    """The tokens of ``item`` without space and comments."""
    tokens = (token.group() for token in _TOKEN.finditer(item))
    return [token for token in tokens if token.strip() and not token.startswith(("--", "/*"))]


def _is_constraint(item: str) -> bool:
    return _words(item)[0].upper() in _CONSTRAINT_WORDS


def _name(item: str) -> str:
    """Name of a column, or of a constraint ("" where it has none), casefolded."""
    words = _words(item)
    if not _is_constraint(item):
        return _unquoted(words[0])
    return _unquoted(words[1]) if words[0].upper() == "CONSTRAINT" else ""


def _unquoted(word: str) -> str:
    opening = word[0]
    if opening in "\"`'":
        word = word[1:-1].replace(opening * 2, opening)
    elif opening == "[":
        word = word[1:-1]
    return word.casefold()


def _default(sql: str) -> str:
    return f"DEFAULT /* opstage */ {sql}"


def _folded(names: set[str]) -> set[str]:
    return {name.casefold() for name in names}


def _lines(definitions: list[str]) -> tuple[str, ...]:
    # A line of its own: the item before may end in a comment that runs to the end of its line.
    return tuple(f"\n\t{definition}" for definition in definitions)
