"""What goes wrong with an embedded server, in both languages, with what to do about it."""

from __future__ import annotations

from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError


class EmbeddedServerError(OpstageError):
    """A server could not be found, started or reached. The message itself says what to do."""

    def hint(self, locale: str) -> str:
        return ""


def embedded_error(zh: str, en: str) -> EmbeddedServerError:
    """Build the error from its message in both languages."""
    return EmbeddedServerError(ErrorCode.UNAVAILABLE, text={"zh": zh, "en": en})
