"""Bad fields, collected so that a caller learns of all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.form import Child, Form, FormField
from staging.domain.errors import FieldProblem, invalid
from staging.domain.intake import sanitize_text

_MOST = 100  # further ones are not listed
_HELPED = 20  # whoever has more unknown names than this is not helped by suggestions, which take time


class Problems:
    """Collects ``FieldProblem``; ``raise_any`` ends the collecting."""

    def __init__(self) -> None:
        self.found: list[FieldProblem] = []

    def add(
        self,
        path: str,
        code: ErrorCode,
        reason: Mapping[str, str] | None = None,
        candidates: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.found.append(FieldProblem(path, code, reason, candidates))

    def bad(self, path: str, zh: str, en: str) -> None:
        """A value that does not fit."""
        self.add(path, ErrorCode.FIELD_INVALID, {"zh": zh, "en": en})

    def required(self, path: str, label: Mapping[str, str]) -> None:
        zh, en = f"缺少必填项“{label['zh']}”", f'"{label["en"]}" is required'
        self.add(path, ErrorCode.FIELD_REQUIRED, {"zh": zh, "en": en})

    def unknown(self, path: str, name: str, of: Form | Child) -> None:
        """A name the form does not have; says which ones come near."""
        near = close_names(name, of) if len(self.found) < _HELPED else []
        shown = sanitize_text(name, 60)
        zh, en = f"没有字段“{shown}”", f'there is no field "{shown}"'
        if near:
            zh += f"，是否指：{'、'.join(near)}"
            en += f"; did you mean {', '.join(near)}"
        self.add(path, ErrorCode.FIELD_UNKNOWN, {"zh": zh, "en": en})

    def raise_any(self) -> None:
        """Raise ``ValidationFailed`` if there is anything to tell."""
        if self.found:
            raise invalid(self.found[:_MOST])


def close_names(name: str, of: Form | Child) -> list[str]:
    """Names of fields and child tables of ``of`` that ``name`` may have meant, its labels included."""
    labelled: dict[str, str] = {}
    entries: list[FormField | Child] = [*of.fields, *of.children]
    for entry in entries:
        for word in (entry.name, entry.label.zh, entry.label.en):
            labelled.setdefault(word.lower(), entry.name)
    near = get_close_matches(name.lower()[:60], labelled, n=3, cutoff=0.6)
    return list(dict.fromkeys(labelled[word] for word in near))
