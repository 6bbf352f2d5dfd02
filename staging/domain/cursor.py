"""Where a listener stands in the journal of many operations: pure bookkeeping, no I/O.

Events of one operation are numbered without gaps, but the journal has no number across operations, and commits do not
become visible in the order of their times. So a cursor is a horizon in time, safely older than any open transaction,
plus the last seq seen of each operation that moved after it.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

# Longer than any transaction of ours may stay open (statement, lock and idle limits end it before).
OVERLAP = timedelta(seconds=90)
# A cursor travels in a header. Beyond this many operations in the overlap, the oldest are let go and it gets shorter.
MAX_SEEN = 500
_VERSION, _MARK_BYTES = 1, 6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True)
class Cursor:
    """``horizon`` (aware UTC): all events before it have been seen. ``seen``: mark of an operation → (last seq seen,
    its time), for those that moved after the horizon."""

    horizon: datetime
    seen: dict[bytes, tuple[int, datetime]] = field(default_factory=dict)

    def last_seen(self, op_id: str) -> int:
        """The last seq of ``op_id`` seen after the horizon; 0 where none was."""
        return self.seen.get(mark(op_id), (0, self.horizon))[0]

    def advance(self, op_id: str, seq: int, at: datetime) -> None:
        """Count this event as seen, and move the horizon on where it has fallen far behind."""
        before, when = self.seen.get(mark(op_id), (0, at))
        self.seen[mark(op_id)] = (max(seq, before), max(at, when))
        if at - OVERLAP > self.horizon:
            self._move_horizon(at - OVERLAP)
        if len(self.seen) > MAX_SEEN:
            times = sorted(when for _, when in self.seen.values())
            self._move_horizon(times[len(times) - MAX_SEEN // 2] + _MICROSECOND)

    def _move_horizon(self, horizon: datetime) -> None:
        self.horizon = horizon
        self.seen = {key: value for key, value in self.seen.items() if value[1] >= horizon}

    def dump(self) -> str:
        """Opaque text for ``Last-Event-ID``; about ten characters for each operation of the last 90 seconds."""
        raw = bytearray([_VERSION])
        raw += _micros(self.horizon).to_bytes(8, "big")
        for key, (seq, _) in self.seen.items():
            raw += key + _varint(seq)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def load_cursor(text: str) -> Cursor | None:
    """The cursor ``dump`` wrote, or None for anything else (a client may send what it likes)."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        if not raw or raw[0] != _VERSION:
            return None
        cursor = Cursor(_EPOCH + timedelta(microseconds=int.from_bytes(raw[1:9], "big")))
        latest = cursor.horizon + OVERLAP  # no event that was seen can be younger
        position = 9
        while position < len(raw):
            key, position = raw[position : position + _MARK_BYTES], position + _MARK_BYTES
            seq, position = _read_varint(raw, position)
            cursor.seen[key] = (seq, latest)
    except (ValueError, OverflowError, IndexError):
        return None
    return cursor if len(raw) >= 9 and len(cursor.seen) <= MAX_SEEN else None


def mark(op_id: str) -> bytes:
    """Short for an operation id within one cursor (48 bits)."""
    return hashlib.blake2b(op_id.encode(), digest_size=_MARK_BYTES).digest()


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(raw: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
        if shift > 63:
            raise ValueError("no number of ours")
