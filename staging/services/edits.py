"""What a person changed on the card, laid over what was prepared: input of another look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import ConfirmRequest, PrepareItem
from staging.domain.errors import FieldProblem, invalid
from staging.domain.ports import ErpAdapter
from staging.services.snapshot import SnapshotItem


def edits_of(request: ConfirmRequest, count: int) -> dict[int, dict[str, Any]]:
    """Item → its edits, for a preparation of ``count`` items. Raises field_invalid for an item there is not."""
    edits = {int(k): v for k, v in request.item_edits.items() if k.isascii() and k.isdigit()}
    if request.edits:
        edits.setdefault(0, request.edits)
    if len(edits) != len(request.item_edits) + bool(request.edits) or any(i >= count for i in edits):
        reason = {"zh": "没有这一项操作", "en": "there is no such item in this preparation"}
        raise invalid([FieldProblem("itemEdits", ErrorCode.FIELD_INVALID, reason)])
    return edits


def edited(
    adapter: ErpAdapter, entry: SnapshotItem, edits: Mapping[str, Any], *, allow_duplicate: bool = False
) -> PrepareItem:
    """``entry`` to be prepared once more, with ``edits`` in place of what they name."""
    prepared = entry.prepared
    return entry.item.model_copy(
        update={
            "payload": adapter.restore_payload(prepared) | dict(edits),
            "source_ref": prepared.source_ref,
            "record": prepared.target_bill_id,
            "allow_duplicate": allow_duplicate or entry.item.allow_duplicate,
        }
    )
