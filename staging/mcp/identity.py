"""Whose credentials a call carries. The agent's token makes every call; a person's, if there is one, only confirms.

An agent's credential can never confirm (I10), so ``confirm_operation`` needs a second one, of the same user and of kind
``person``. It is kept apart from the first and leaves this process only towards the API, in the confirm itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp.server.context import ServerRequestContext

PERSON_HEADER = "x-opstage-person-token"
"""Over HTTP the person's token travels in this header of each request, beside ``Authorization``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``token``: the agent's bearer token; ``person_token``: the person's, "" where there is none."""

    token: str = field(repr=False)
    person_token: str = field(default="", repr=False)

    @property
    def key(self) -> str:
        """Names both tokens without being them: for caches, and for what must not pass from one caller to another."""
        both = f"{self.token}\n{self.person_token}"
        return hashlib.sha256(both.encode("utf-8", "surrogatepass")).hexdigest()


Context = ServerRequestContext[Any, Any]
IdentityOf = Callable[[Context], Identity]


def fixed(identity: Identity) -> IdentityOf:
    """Over stdio: the process serves one user."""
    return lambda context: identity


def from_request(context: Context) -> Identity:
    """Over HTTP: the headers of this very request, which ``http.guarded`` has let pass."""
    headers = context.request.headers if context.request is not None else {}
    return Identity(bearer_of(headers.get("authorization", "")), headers.get(PERSON_HEADER, "").strip())


def bearer_of(header: str) -> str:
    """The token of an Authorization header, "" where it is no bearer token."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
