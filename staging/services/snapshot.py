"""What a preparation keeps until it is confirmed: bound to tenant, user, conversation and commands by its hash."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import Preparation, PreparationItem, PrepareItem, Preview
from staging.domain.canonical import fingerprint, payload_hash
from staging.domain.identity import Actor, Tenant
from staging.domain.messages import render
from staging.domain.ports import Prepared, Route


@dataclass(frozen=True, slots=True)
class SnapshotItem:
    """The request and what it was normalized to. ``twin``: what it probably duplicates (``record``, ``candidates`` of
    the refusal), which the person has to override; None where there is nothing to override."""

    item: PrepareItem
    prepared: Prepared
    twin: dict[str, Any] | None = None

    def shown(self, locale: str) -> Preview:
        """The preview; its warning of a probable duplicate in ``locale``."""
        preview = self.prepared.preview
        if self.twin is None:
            return preview
        code = ErrorCode.POSSIBLE_DUPLICATE
        message = render(code, self.twin, locale)[0]
        warnings = [
            w.model_copy(update={"message": message}) if w.code == code else w for w in preview.warnings
        ]
        return preview.model_copy(update={"warnings": warnings})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``expires_at`` aware UTC. ``superseded_by``: id of the preparation that replaced this one, or ""."""

    preparation_id: str
    tenant: Tenant
    user_id: str
    conversation_id: str
    trace_id: str
    expires_at: datetime
    items: tuple[SnapshotItem, ...]
    superseded_by: str = ""

    def belongs_to(self, actor: Actor) -> bool:
        return self.tenant == actor.tenant and self.user_id == actor.user_id

    @property
    def hash(self) -> str:
        """Fixes what is shown: whose, which commands, payloads, targets and pins."""
        return fingerprint(
            {
                "tenant": [self.tenant.brands_id, self.tenant.subsidiary_id],
                "user": self.user_id,
                "conversation": self.conversation_id,
                "items": [
                    [
                        s.prepared.route.command_type,
                        s.prepared.target_bill_id,
                        s.prepared.payload,
                        s.prepared.source_ref,
                        s.prepared.pins,
                        s.item.allow_duplicate,
                    ]
                    for s in self.items
                ],
            }
        )

    def to_wire(self, locale: str) -> Preparation:
        """What a reader of ``locale`` is shown."""
        items = [
            PreparationItem(
                command_type=s.prepared.route.command_type,
                auto_execute=s.prepared.route.auto_execute,
                requires_approval=s.prepared.route.requires_approval,
                payload_hash=payload_hash(s.prepared.payload),
                preview=s.shown(locale),
            )
            for s in self.items
        ]
        first = items[0]
        return Preparation(
            preparation_id=self.preparation_id,
            expires_at=self.expires_at,
            snapshot_hash=self.hash,
            command_type=first.command_type,
            auto_execute=first.auto_execute,
            requires_approval=first.requires_approval,
            conversation_id=self.conversation_id,
            preview=first.preview,
            items=items,
        )

    def dump(self) -> dict[str, Any]:
        """JSON-ready; ``load`` is the inverse."""
        return {
            "preparationId": self.preparation_id,
            "brandsId": self.tenant.brands_id,
            "subsidiaryId": self.tenant.subsidiary_id,
            "userId": self.user_id,
            "conversationId": self.conversation_id,
            "traceId": self.trace_id,
            "expiresAt": self.expires_at.isoformat(),
            "supersededBy": self.superseded_by,
            "items": [
                {
                    "item": s.item.model_dump(mode="json", exclude={"payload", "source_ref"}),
                    "prepared": asdict(s.prepared) | {"preview": s.prepared.preview.model_dump(mode="json")},
                    "twin": s.twin,
                }
                for s in self.items
            ],
        }


def load(data: dict[str, Any]) -> Snapshot:
    """Rebuild what ``Snapshot.dump`` wrote."""
    items = []
    for entry in data["items"]:
        prepared = dict(entry["prepared"])
        prepared["route"] = Route(**prepared["route"])
        prepared["preview"] = Preview.model_validate(prepared["preview"])
        items.append(
            SnapshotItem(PrepareItem.model_validate(entry["item"]), Prepared(**prepared), entry["twin"])
        )
    return Snapshot(
        preparation_id=data["preparationId"],
        tenant=Tenant(data["brandsId"], data["subsidiaryId"]),
        user_id=data["userId"],
        conversation_id=data["conversationId"],
        trace_id=data["traceId"],
        expires_at=datetime.fromisoformat(data["expiresAt"]),
        items=tuple(items),
        superseded_by=data["supersededBy"],
    )
