"""Documents of the demo ERP as a clerk meets them, for the page's tests: requests to prepare, and master data."""

from __future__ import annotations

from typing import Any

from tests.support.api import Door
from tests.support.demo_requests import word


def some(door: Door, form: str, user: str = "u-zhao", position: int = 0) -> dict[str, Any]:
    """A valid record of the form's, in the order of ids: ``{id, label, values, texts}``."""
    query = {"filter": {"invalid": False}, "page": {"size": position + 1}, "sort": [{"field": "id"}]}
    found: dict[str, Any] = door.as_(user).post(f"/v1/forms/{form}/query", query)["items"][position]
    return found


def quotation(customer: str, **payload: Any) -> dict[str, Any]:
    """u-lin may: a calendar of two parts, the first with two price tiers."""
    inside = {
        "name": "内页",
        "material": "157g 铜版纸",
        "gramWeight": 157,
        "sheetSize": "对开",
        "color": "4+4",
        "process": "覆哑膜",
        "quantity": "5000",
        "price": "1.85",
        "tiers": [{"quantity": "10000", "price": "1.62"}, {"quantity": "20000", "price": "1.48"}],
    }
    cover = {"name": "封面", "material": "2mm 灰板", "quantity": "5000", "price": "0.925"}
    content = {"customer": customer, "title": f"2027 精装台历 {word()}", "deliveryDate": "2027-01-15"}
    return {
        "formId": "quotation",
        "opType": "create",
        "payload": {**content, "parts": [inside, cover], **payload},
    }


def update(form: str, record: str, **payload: Any) -> dict[str, Any]:
    return {"formId": form, "opType": "update", "record": record, "payload": payload}


def confirm(door: Door, user: str, preparation_id: str) -> str:
    """The person's yes, elsewhere than on the page; id of the operation."""
    path = f"/v1/preparations/{preparation_id}/confirm"
    return str(door.as_(user).post(path, {}, expect=202)["operations"][0]["id"])
