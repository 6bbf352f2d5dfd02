"""A horizontal bar chart as SVG text: readable on light and dark pages, no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 900, 360, 60, 30, 64
_FILL = {"ours": "#0b7285", "hand": "#868e96", "peer": "#ced4da"}
_WEIGHT = {"ours": ' font-weight="600"'}


@dataclass(frozen=True, slots=True)
class Bar:
    """``kind``: ours, hand or peer."""

    label: str
    value: float
    kind: str


def bars(title: str, rows: Sequence[Bar], foot: str) -> str:
    """The chart; a line marks the value 1."""
    room = _WIDTH - _LEFT - _RIGHT
    scale = room / max(1.0, *(bar.value for bar in rows))
    height = _TOP + _ROW * len(rows) + 40
    one, last = _LEFT + scale, _TOP + _ROW * len(rows)
    view = f'viewBox="0 0 {_WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="14"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        _text(16, 28, title, 'font-size="16" font-weight="600"'),
    ]
    for number, bar in enumerate(rows):
        top = _TOP + _ROW * number
        long = bar.value * scale
        place = f'x="{_LEFT}" y="{top + 2}" width="{long:.1f}" height="20" rx="2"'
        parts += [
            _text(_LEFT - 10, top + 17, bar.label, 'text-anchor="end"' + _WEIGHT.get(bar.kind, "")),
            f'<rect {place} fill="{_FILL[bar.kind]}"/>',
            _text(_LEFT + long + 6, top + 17, f"{bar.value:.2f}"),
        ]
    line = f'x1="{one:.1f}" y1="{_TOP - 6}" x2="{one:.1f}" y2="{last}"'
    parts += [
        f'<line {line} stroke="#212529" stroke-dasharray="3 3"/>',
        _text(16, height - 14, foot, 'font-size="12"'),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" fill="#212529" {more}>{escape(words)}</text>'
