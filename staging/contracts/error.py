"""The one error shape every door speaks: ``{"error": {"code", "message", "hint", "details"?}}``."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """Base of everything on the wire: JSON camelCase, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _from_no_number(cls, data: Any) -> Any:
        # FastAPI validates "from attributes": a Decimal, which has none of ours, would pass for an object without any.
        return str(data) if isinstance(data, Decimal) else data

    def to_wire(self) -> dict[str, Any]:
        """JSON-ready camelCase dict."""
        return self.model_dump(mode="json", by_alias=True)


class ErrorCode(StrEnum):
    """Stable error codes (CONTRACT section 4). Clients branch on these, never on the text."""

    PREPARATION_NOT_FOUND_OR_EXPIRED = "preparation_not_found_or_expired"
    PREPARATION_SUPERSEDED = "preparation_superseded"
    FORM_NOT_FOUND = "form_not_found"
    RECORD_NOT_FOUND = "record_not_found"
    RECORD_AMBIGUOUS = "record_ambiguous"
    OPERATION_NOT_FOUND = "operation_not_found"
    FIELD_UNKNOWN = "field_unknown"
    FIELD_NOT_WRITABLE = "field_not_writable"
    FIELD_INVALID = "field_invalid"
    FIELD_REQUIRED = "field_required"
    REFERENCE_NOT_FOUND = "reference_not_found"
    REFERENCE_AMBIGUOUS = "reference_ambiguous"
    STATE_CONFLICT = "state_conflict"
    VERSION_CONFLICT = "version_conflict"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    FORBIDDEN = "forbidden"
    UNAUTHENTICATED = "unauthenticated"
    BUSINESS_RULE = "business_rule"
    POSSIBLE_DUPLICATE = "possible_duplicate"
    EXPIRED = "expired"
    QUERY_SORT_FIELD_NOT_ALLOWED = "query_sort_field_not_allowed"
    QUERY_DIRECTION_INVALID = "query_direction_invalid"
    QUERY_PAGE_INVALID = "query_page_invalid"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    PAYLOAD_INVALID = "payload_invalid"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"


class FieldError(Wire):
    """One bad field. ``field`` is the public path, e.g. ``parts[1].tiers[0].price``."""

    field: str
    code: ErrorCode
    message: str


class ErrorBody(Wire):
    code: ErrorCode
    message: str
    hint: str
    details: list[FieldError] | None = None
    candidates: list[dict[str, Any]] | None = None
    conflict: list[dict[str, Any]] | None = None


class ErrorResponse(Wire):
    error: ErrorBody
