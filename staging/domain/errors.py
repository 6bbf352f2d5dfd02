"""The error tree. An error is a code, parameters for its message, and optionally details; text is made late.

::

    OpstageError
    ├── ValidationFailed      every bad field at once (details)
    ├── Refused               one precondition or rule said no
    └── Transient             try again later; never reaches a person as it is

Every error knows the numeric code an operation ends with when it happens during execution, and is picklable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from staging.contracts.error import ErrorBody, ErrorCode as E, ErrorResponse, FieldError
from staging.contracts.status import StatusCode as C
from staging.domain.messages import render

HTTP_STATUS: Mapping[E, int] = {
    E.PREPARATION_NOT_FOUND_OR_EXPIRED: 404,
    E.PREPARATION_SUPERSEDED: 409,
    E.FORM_NOT_FOUND: 404,
    E.RECORD_NOT_FOUND: 404,
    E.RECORD_AMBIGUOUS: 409,
    E.OPERATION_NOT_FOUND: 404,
    E.FIELD_UNKNOWN: 422,
    E.FIELD_NOT_WRITABLE: 422,
    E.FIELD_INVALID: 422,
    E.FIELD_REQUIRED: 422,
    E.REFERENCE_NOT_FOUND: 422,
    E.REFERENCE_AMBIGUOUS: 422,
    E.STATE_CONFLICT: 409,
    E.VERSION_CONFLICT: 409,
    E.IDEMPOTENCY_CONFLICT: 409,
    E.FORBIDDEN: 403,
    E.UNAUTHENTICATED: 401,
    E.BUSINESS_RULE: 422,
    E.POSSIBLE_DUPLICATE: 409,
    E.EXPIRED: 410,
    E.QUERY_SORT_FIELD_NOT_ALLOWED: 422,
    E.QUERY_DIRECTION_INVALID: 422,
    E.QUERY_PAGE_INVALID: 422,
    E.PAYLOAD_TOO_LARGE: 413,
    E.PAYLOAD_INVALID: 400,
    E.RATE_LIMITED: 429,
    E.UNAVAILABLE: 503,
}

STATUS_CODE: Mapping[E, C] = {
    E.FORM_NOT_FOUND: C.NOT_FOUND,
    E.RECORD_NOT_FOUND: C.NOT_FOUND,
    E.OPERATION_NOT_FOUND: C.NOT_FOUND,
    E.RECORD_AMBIGUOUS: C.CONFLICT,
    E.STATE_CONFLICT: C.CONFLICT,
    E.VERSION_CONFLICT: C.CONFLICT,
    E.IDEMPOTENCY_CONFLICT: C.CONFLICT,
    E.POSSIBLE_DUPLICATE: C.CONFLICT,
    E.FORBIDDEN: C.FORBIDDEN,
    E.UNAUTHENTICATED: C.FORBIDDEN,
    E.BUSINESS_RULE: C.RULE_REFUSED,
    E.EXPIRED: C.EXPIRED,
    E.UNAVAILABLE: C.UNEXPECTED,
}


_TOLD = 5  # bad fields named in the message itself; ``details`` has them all


@dataclass(eq=False)  # an exception is itself, not its contents: by contents it would not even be hashable
class OpstageError(Exception):
    """``code`` and the ``params`` of its message; ``message``/``hint`` are rendered per locale ("zh" or "en").

    ``text`` (``{"zh": …, "en": …}``) replaces the table's message where a rule has words of its own.
    """

    code: E
    params: dict[str, Any] = field(default_factory=dict)
    text: dict[str, str] | None = None
    details: tuple[FieldProblem, ...] = ()
    candidates: tuple[dict[str, Any], ...] = ()
    conflict: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        Exception.__init__(self, self.code.value)

    def __str__(self) -> str:
        hint = self.hint("en")
        return f"{self.code.value}: {self.message('en')}" + (f" ({hint})" if hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            type(self),
            (self.code, self.params, self.text, self.details, self.candidates, self.conflict),
        )

    def message(self, locale: str) -> str:
        if self.text:
            return self.text.get(locale) or self.text["en"]
        if self.details:
            more = "; …" if len(self.details) > _TOLD else ""
            return "; ".join(f"{d.field}: {d.message(locale)}" for d in self.details[:_TOLD]) + more
        return render(self.code, self.params, locale)[0]

    def hint(self, locale: str) -> str:
        return render(self.code, self.params, locale)[1]

    @property
    def http_status(self) -> int:
        return HTTP_STATUS[self.code]

    @property
    def status_code(self) -> C:
        """What the operation's ``iStatusCode`` becomes when this ends its execution; 400 where not listed."""
        return STATUS_CODE.get(self.code, C.PAYLOAD_INVALID)

    def body(self, locale: str) -> ErrorResponse:
        """The wire form in ``locale``."""
        details = [FieldError(field=d.field, code=d.code, message=d.message(locale)) for d in self.details]
        return ErrorResponse(
            error=ErrorBody(
                code=self.code,
                message=self.message(locale),
                hint=self.hint(locale),
                details=details or None,
                candidates=list(self.candidates) or None,
                conflict=list(self.conflict) or None,
            )
        )


@dataclass(frozen=True)
class FieldProblem:
    """One bad field: public path, code, and what its message needs (``reason`` {"zh","en"} is most specific)."""

    field: str
    code: E
    reason: Mapping[str, str] | None = None
    candidates: Sequence[Mapping[str, Any]] = ()

    def message(self, locale: str) -> str:
        if self.reason:
            return self.reason.get(locale) or self.reason["en"]
        return render(self.code, {"field": self.field}, locale)[0]


class ValidationFailed(OpstageError):
    """The input is not valid for the form; ``details`` lists every bad field. Code of the first bad field."""


class Refused(OpstageError):
    """A precondition, permission, state, version or business rule said no."""


class Transient(OpstageError):
    """Nothing is wrong with the request; the moment was. Raised with ``unavailable``."""


def invalid(problems: Sequence[FieldProblem]) -> ValidationFailed:
    """Build the error for a non-empty list of bad fields."""
    first = problems[0]
    return ValidationFailed(
        first.code,
        {"field": first.field},
        details=tuple(problems),
        candidates=tuple(dict(c) for p in problems for c in p.candidates),
    )


def rule(zh: str, en: str, code: E = E.BUSINESS_RULE, **params: Any) -> Refused:
    """A business rule's refusal in its own words, both languages."""
    return Refused(code, params, text={"zh": zh, "en": en})
