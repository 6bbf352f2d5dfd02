"""A point in time as it comes in: with its zone, and within what every database can hold."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _within(moment: datetime) -> datetime:
    if not _FIRST <= moment <= _LAST:
        raise ValueError("a time between 1970 and 9000 is expected")
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_within)]
