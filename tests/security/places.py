"""Where a payload has keys: forms and commands, new and changed records, lines and lines of lines."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from staging.storage.tables import metadata
from tests.support.api import Door
from tests.support.demo_papers import quotation, some
from tests.support.demo_requests import new_customer, word
from workers.erp.demo.schema import demo_metadata


@dataclass(frozen=True)
class Place:
    """``request`` makes a right one; ``at``: the way to the object that gets one more key; ``field``: a scalar there;
    ``form``: whose schema says what is known there ("" for a command)."""

    name: str
    user: str
    request: Callable[[Door], dict[str, Any]]
    field: str
    form: str = ""
    at: tuple[str | int, ...] = ()

    @property
    def path(self) -> str:
        """What a key's path begins with in ``details``."""
        text = ""
        for part in self.at:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return f"{text}." if text else ""

    def with_key(self, request: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
        changed = deepcopy(request)
        target = changed["payload"]
        for part in self.at:
            target = target[part]
        target[key] = value
        return changed


def _customer(door: Door) -> dict[str, Any]:
    return new_customer()


def _rename(door: Door) -> dict[str, Any]:
    record = some(door, "customer")["id"]
    return {"formId": "customer", "opType": "update", "record": record, "payload": {"name": word()}}


def _quotation(door: Door) -> dict[str, Any]:
    return quotation(some(door, "customer")["id"])


def _adjustment(door: Door) -> dict[str, Any]:
    payload = {"product": some(door, "product")["id"], "delta": "5", "reason": "count_gain"}
    return {"commandType": "erp.stock_adjustment.create", "payload": payload}


def _title(door: Door) -> dict[str, Any]:
    record = some(door, "digital_human_project")["id"]
    command = "erp.digital_human_project.setTitle"
    return {"commandType": command, "record": record, "payload": {"title": word()}}


PLACES = [
    Place("customer create", "u-zhao", _customer, "name", "customer"),
    Place("customer update", "u-zhao", _rename, "name", "customer"),
    Place("quotation create", "u-zhao", _quotation, "title", "quotation"),
    Place("quotation line", "u-zhao", _quotation, "name", "quotation", ("parts", 0)),
    Place("line of a line", "u-zhao", _quotation, "price", "quotation", ("parts", 0, "tiers", 1)),
    Place("command", "u-zhao", _adjustment, "delta"),
    Place("command on a record", "u-zhao", _title, "title"),
]


def public_names(door: Door, place: Place) -> set[str]:
    """Names that may be put in at this place."""
    if not place.form:
        return {"product", "delta", "reason", "warehouse", "memo", "title"}
    schema = door.as_(place.user).get(f"/v1/forms/{place.form}")
    for part in place.at:
        if isinstance(part, str):
            (schema,) = (child for child in schema["children"] if child["name"] == part)
    fields = {field["name"] for field in schema["fields"] if field.get("writable", True)}
    return fields | {child["name"] for child in schema.get("children") or []}


def counts(door: Door) -> dict[str, int]:
    """Rows in each table of queue and ERP."""
    with door.services.databases.store.read() as connection:
        return {
            table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for schema in (metadata, demo_metadata)
            for table in schema.tables.values()
        }
