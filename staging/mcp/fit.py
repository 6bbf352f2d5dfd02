"""Answers that fit a model's context: long texts and long lists are shortened, with a note of what is missing.

Totals, counts and states are fields of their own and stay. Nothing is dropped without being named in ``notes``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BUDGET = 24_000
"""Characters of JSON an answer may have; about a third as many tokens, or as many in Chinese."""
_TEXT = 1_000
_SHORT_TEXT = 80
_MAX_NOTES = 10


@dataclass(frozen=True, slots=True)
class _List:
    path: str
    items: list[Any]
    size: int


def fit(answer: dict[str, Any], locale: str, budget: int = BUDGET) -> dict[str, Any]:
    """``answer`` itself, shortened in place to at most ``budget`` characters (if that can be), ``notes`` added."""
    cut = _shorten_texts(answer, _TEXT)
    lengths: dict[str, int] = {}
    while (over := _size(answer) - budget) > 0:
        longest = max(_lists(answer, ""), key=lambda one: one.size, default=None)
        if longest is None:
            cut |= _shorten_texts(answer, _SHORT_TEXT)
            break
        lengths.setdefault(longest.path, len(longest.items))
        del longest.items[_kept(longest, over) :]
    notes = [_list_note(path, len(_at(answer, path)), total, locale) for path, total in lengths.items()]
    notes += [_text_note(path, locale) for path in sorted(cut)]
    if len(notes) > _MAX_NOTES:
        more = len(notes) - _MAX_NOTES
        notes = [
            *notes[:_MAX_NOTES],
            f"另有 {more} 处被缩短" if locale == "zh" else f"{more} more places are shortened",
        ]
    if notes:
        answer["notes"] = [*answer.get("notes", []), *notes]
    return answer


def _kept(longest: _List, over: int) -> int:
    """How many entries of the longest list stay: by its share of what is too much, at least half, at least one."""
    count = len(longest.items)
    fitting = count - (count * over) // max(1, longest.size) - 1
    return max(1, min(count - 1, max(fitting, count // 2)))


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _lists(value: Any, path: str) -> Iterator[_List]:
    """Every list below ``value`` that can lose an entry; an outer one comes with the size of all it holds."""
    for step, below in value.items() if isinstance(value, dict) else enumerate(value):
        if not isinstance(below, dict | list):
            continue
        at = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}".removeprefix(".")
        if isinstance(below, list) and len(below) > 1 and at != "notes":
            yield _List(at, below, _size(below))
        yield from _lists(below, at)


def _at(answer: dict[str, Any], path: str) -> list[Any]:
    """The list at ``path`` as ``_lists`` names it; empty where an outer list has lost it since."""
    return next((one for name, one in _walk(answer, "") if name == path), [])


def _walk(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    for step, below in value.items() if isinstance(value, dict) else enumerate(value):
        at = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}".removeprefix(".")
        if isinstance(below, list):
            yield at, below
        if isinstance(below, dict | list):
            yield from _walk(below, at)


def _shorten_texts(value: Any, limit: int, path: str = "") -> set[str]:
    """Cut texts longer than ``limit`` in place; returns where."""
    cut: set[str] = set()
    for step, below in list(value.items() if isinstance(value, dict) else enumerate(value)):
        at = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}".removeprefix(".")
        if isinstance(below, str) and len(below) > limit:
            value[step] = below[:limit] + "…"
            cut.add(at)
        elif isinstance(below, dict | list):
            cut |= _shorten_texts(below, limit, at)
    return cut


def _list_note(path: str, kept: int, total: int, locale: str) -> str:
    if locale == "zh":
        return f"{path}：此处只有 {total} 条中的前 {kept} 条；请缩小范围或用更小的 page.size 逐页查询"
    return f"{path}: the first {kept} of {total} entries; narrow it down, or page through with a smaller page.size"


def _text_note(path: str, locale: str) -> str:
    return f"{path}：文本过长，已截断" if locale == "zh" else f"{path}: a long text, cut"
