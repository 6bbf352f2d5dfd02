"""A preparation as plain text for a person: complete, every value on one line and in quotes.

What stands in quotes is data from the ERP or from a payload. Quotes, line breaks and invisible characters in it are
escaped, so that no value can look like a line of the card.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

from staging.contracts.preparation import ChildLine, ChildSection, FieldChange, Preparation, Preview

MAX_CHARACTERS = 12_000
"""A card longer than this is not shown in a client's form: nobody would read it there."""

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_WORDS = {
    "zh": {
        "ask": "是否执行以下操作？",
        "record": "单据",
        "empty": "（空）",
        "add": "新增行",
        "change": "修改行",
        "remove": "删除行",
        "keep": "不变",
        "kept": "另有 {n} 行不变",
        "totals": "合计",
        "warning": "注意",
        "auto": "确认后自动执行。",
        "manual": "确认后由您在 ERP 表单中完成。",
        "approval": "确认后还需另一人审批。",
        "unknown": "请注意：您另有 {n} 个操作结果尚不明确。若这是其中之一的重复，请勿确认。",
        "until": "有效期至 {at}",
    },
    "en": {
        "ask": "Execute the following?",
        "record": "Record",
        "empty": "(empty)",
        "add": "New line",
        "change": "Changed line",
        "remove": "Removed line",
        "keep": "Unchanged",
        "kept": "{n} more lines stay as they are",
        "totals": "Totals",
        "warning": "Note",
        "auto": "It is executed once you confirm.",
        "manual": "Once you confirm, you finish it in the ERP's own form.",
        "approval": "Once you confirm, a second person has to approve it.",
        "unknown": "Mind: the outcome of {n} of your operations is not known yet. If this repeats one, do not confirm.",
        "until": "Valid until {at}",
    },
}


def card(preparation: Preparation, locale: str, *, unknown: int = 0) -> str:
    """All of it, whatever its length. ``unknown``: how many earlier operations have an outcome not known yet."""
    return "\n".join(_Card("zh" if locale == "zh" else "en").lines(preparation, unknown))


def quoted(text: str) -> str:
    """``text`` as one line between double quotes; what cannot be seen is spelled out."""
    whole = json.dumps(text, ensure_ascii=False)
    return "".join(_spelled(c) if unicodedata.category(c) in _UNSEEN else c for c in whole)


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


class _Card:
    def __init__(self, locale: str) -> None:
        self._w = _WORDS[locale]

    def lines(self, preparation: Preparation, unknown: int) -> Iterator[str]:
        yield self._w["ask"]
        for number, item in enumerate(preparation.items, 1):
            yield ""
            yield from self._preview(item.preview, f"{number}. " if len(preparation.items) > 1 else "")
            yield self._w["auto" if item.auto_execute else "manual"]
            if item.requires_approval:
                yield self._w["approval"]
        yield ""
        if unknown:
            yield self._w["unknown"].format(n=unknown)
        yield self._w["until"].format(at=f"{preparation.expires_at:%Y-%m-%d %H:%M} UTC")

    def _preview(self, preview: Preview, number: str) -> Iterator[str]:
        yield f"{number}{preview.form_label} · {preview.op_label}"
        if preview.record_label or preview.record_id:
            yield f"{self._w['record']}: {quoted(preview.record_label or preview.record_id)}"
        for change in preview.fields:
            yield f"- {self._change(change)}"
        for section in preview.children:
            yield from self._section(section, "")
        if preview.totals:
            yield f"{self._w['totals']}: " + "; ".join(self._change(total) for total in preview.totals)
        for warning in preview.warnings:
            yield f"{self._w['warning']}: {quoted(warning.message)}"

    def _section(self, section: ChildSection, indent: str) -> Iterator[str]:
        yield f"{indent}{section.label}:"
        kept = 0
        for line in section.lines:
            if line.action == "keep" and not line.fields and not any(s.lines for s in line.children):
                kept += 1
                continue
            yield from self._line(line, indent + "  ")
        if kept:
            yield f"{indent}  {self._w['kept'].format(n=kept)}"

    def _line(self, line: ChildLine, indent: str) -> Iterator[str]:
        yield f"{indent}- {self._w[line.action]}: " + "; ".join(
            self._change(change) for change in line.fields
        )
        for section in line.children:
            yield from self._section(section, indent + "  ")

    def _change(self, change: FieldChange) -> str:
        old, new = _text(change.old, change.old_text), _text(change.new, change.new_text)
        if (
            old == new and change.old != change.new
        ):  # alike in words, not the same: names that two records share
            old, new = f"{old} ({change.old})", f"{new} ({change.new})"
        shown = quoted(new) if new else self._w["empty"]
        return (
            f"{change.label}: {shown}"
            if not old or old == new
            else f"{change.label}: {quoted(old)} → {shown}"
        )


def _text(value: object, text: str) -> str:
    """What a person reads of a value."""
    return text if text or value is None else str(value)
