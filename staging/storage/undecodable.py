"""One row with broken text must not stop the reading of all the others.

MariaDB stores UTF-8 encoded surrogates in utf8mb4, and SQLite any bytes at all, if another program sends them. The
drivers decode strictly: a SELECT that meets such a row fails as a whole, on MariaDB with a connection out of step that
looks like a network fault, so it would be retried without end. Read through here, what is not UTF-8 becomes NUL, which
no valid text holds: ``domain.intake`` refuses that row's payload and the row ends as any invalid one does.
"""

from __future__ import annotations

import codecs
from typing import Any

_ERRORS = "opstage.nul"
_CODEC = "opstage_utf8"


def decode(raw: bytes) -> str:
    """UTF-8 to text, undecodable bytes to NUL."""
    return raw.decode("utf-8", _ERRORS)


def use_in_pymysql(dbapi_connection: Any) -> None:
    """Make a fresh PyMySQL connection read text with ``decode``; what it sends stays strict UTF-8."""
    dbapi_connection.encoding = _CODEC


def _to_nul(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\0", error.end


def _codec(name: str) -> codecs.CodecInfo | None:
    if name != _CODEC:
        return None
    return codecs.CodecInfo(
        name=_CODEC,
        encode=codecs.utf_8_encode,
        decode=lambda raw, _errors="strict": codecs.utf_8_decode(raw, _ERRORS, True),
    )


codecs.register_error(_ERRORS, _to_nul)
codecs.register(_codec)
