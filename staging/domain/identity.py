"""Who acts, and for which tenant. Built from a verified credential or from a row, never from request data."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class ActorKind(StrEnum):
    AGENT = "agent"
    PERSON = "person"
    SERVICE = "service"
    OPERATOR = "operator"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Tenant:
    """Company and subsidiary; every row and every query carries both."""

    brands_id: str
    subsidiary_id: str


@dataclass(frozen=True, slots=True)
class Actor:
    """The user a call acts for (``user_id``), by which kind of credential, speaking which language."""

    tenant: Tenant
    user_id: str
    kind: ActorKind = ActorKind.PERSON
    locale: str = "zh"


def new_id() -> str:
    """A fresh operation or preparation id: 24 characters of ``[A-Za-z0-9_-]``, some 144 random bits.

    The first is no ``-``: a command line would take it for an option.
    """
    drawn = secrets.token_urlsafe(18)
    return new_id() if drawn.startswith("-") else drawn


def is_valid_id(value: str) -> bool:
    """True for what may stand in ``sId``: up to 64 characters of ``[A-Za-z0-9_-]``."""
    return bool(_ID.match(value))
