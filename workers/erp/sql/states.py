"""Which state a record must be in for each operation: the one list, for preparing and for the guards of the UPDATEs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement

from staging.contracts.error import ErrorCode
from staging.contracts.form import Form, Stamp
from staging.contracts.preparation import OpType
from staging.domain.errors import Refused
from staging.storage.dialect import flag_is
from workers.erp.sql.catalogue_tables import RowTable


@dataclass(frozen=True, slots=True)
class Required:
    """What must be so; None: it does not matter. Of states the form does not have nothing is required."""

    examined: bool | None = None
    invalid: bool | None = None


REQUIRED: Mapping[OpType, Required] = {
    OpType.UPDATE: Required(examined=False, invalid=False),
    OpType.DELETE: Required(examined=False, invalid=False),
    OpType.EXAMINE: Required(examined=False, invalid=False),
    OpType.CANCEL_EXAMINE: Required(examined=True, invalid=False),
    OpType.INVALID: Required(examined=False, invalid=False),
    OpType.CANCEL_INVALID: Required(invalid=True),
}
GENERATE_SOURCE = Required(examined=True, invalid=False)
"""What the source record of a generate must be."""

_WORDS = {
    ("examined", True): ("单据尚未审核", "The record is not examined yet"),
    ("examined", False): ("单据已审核，请先取消审核", "The record is examined; cancel the examination first"),
    ("invalid", True): ("单据未作废", "The record is not invalid"),
    ("invalid", False): ("单据已作废", "The record is invalid"),
}


def _terms(form: Form, required: Required) -> list[tuple[str, Stamp, bool]]:
    states = form.states
    pairs = (("invalid", states.invalid, required.invalid), ("examined", states.examined, required.examined))
    return [
        (name, stamp, wanted) for name, stamp, wanted in pairs if stamp is not None and wanted is not None
    ]


def state_columns(form: Form) -> list[str]:
    """SQL names of the state flags the form has."""
    return [stamp.column for stamp in (form.states.examined, form.states.invalid) if stamp]


def guard(form: Form, master: RowTable, required: Required) -> list[ColumnElement[bool]]:
    """``required`` as WHERE terms; an empty flag counts as 0."""
    return [flag_is(master.named(stamp.column), wanted) for _, stamp, wanted in _terms(form, required)]


def check(form: Form, flags: Mapping[str, object], required: Required) -> None:
    """Raise state_conflict, in words, unless ``flags`` (SQL name → value) are as ``required``."""
    for name, stamp, wanted in _terms(form, required):
        if bool(flags[stamp.column] or 0) != wanted:
            zh, en = _WORDS[name, wanted]
            raise Refused(ErrorCode.STATE_CONFLICT, {"form": form.id}, text={"zh": zh, "en": en})
