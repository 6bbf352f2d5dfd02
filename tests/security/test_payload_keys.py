"""D6, D9, D10: a payload's key is a public, writable field of the form, or it is refused and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sqlalchemy import event, select

from staging.contracts.status import StatusCode
from tests.security.places import PLACES, Place, counts, public_names
from tests.support.api import AGENT, Door
from tests.support.hostile_keys import IMPOSSIBLE, ODD, system_keys
from tests.support.queue_rows import foreign_insert
from workers.erp.demo.schema import masters

REFUSALS = {"field_unknown", "field_not_writable"}


def chunks(keys: list[str]) -> list[list[str]]:
    """As many at a time as an answer tells of."""
    return [keys[start : start + 80] for start in range(0, len(keys), 80)]


def untold(error: dict[str, Any], paths: list[str]) -> list[Any]:
    """Those of ``paths`` that the error does not refuse; an unreadable name is told shortened."""
    told = [d["field"] for d in error["details"] if d["code"] in REFUSALS]
    if len(told) == len(error["details"]) == len(paths):
        return []
    return [path for path in paths if path not in told] or [error]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_no_system_column_and_no_odd_key_is_taken(place: Place, door: Door) -> None:
    """D6, D9, D10."""
    agent = door.as_(place.user, AGENT)
    request = place.request(door)
    assert agent.post("/v1/preparations", request)["state"] == "PREPARED"  # as it is, it is fine
    before = counts(door)
    keys = sorted({*system_keys(), *ODD} - public_names(door, place))
    assert len(keys) > 250
    for some_keys in chunks(keys):
        together = request
        for key in some_keys:
            together = place.with_key(together, key, "1")
        refused = agent.post("/v1/preparations", together, expect=422)["error"]
        assert untold(refused, [place.path + key for key in some_keys]) == []
    for key in ("sBrandsId", "bCheck", "name' OR 1=1 --", "%s", "na\u043ce"):
        refused = agent.post("/v1/preparations", place.with_key(request, key, "1"), expect=422)["error"]
        assert (refused["code"] in REFUSALS, len(refused["details"])) == (True, 1)
    assert counts(door) == before


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_key_no_database_could_hold_is_refused_before_anybody_looks_at_it(place: Place, door: Door) -> None:
    """D9: NUL and half a character."""
    agent = door.as_(place.user, AGENT)
    for key in IMPOSSIBLE:
        content = json.dumps(place.with_key(place.request(door), key, "1")).encode()
        answer = agent.http.post(
            "/v1/preparations", content=content, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "payload_invalid"), answer.text


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@pytest.mark.parametrize("value", [{"$ne": None}, {"a": {"b": 1}}, ["x"], [["x"]], [{"id": 1}], {}, []])
def test_a_field_takes_a_value_not_a_structure(place: Place, value: Any, door: Door) -> None:
    """D9: nested dict or list as value."""
    changed = place.with_key(place.request(door), place.field, value)
    answer = door.as_(place.user, AGENT).post("/v1/preparations", changed, expect=422)["error"]
    assert answer["code"] in ("field_invalid", "field_required")
    assert any(d["field"].startswith(place.path + place.field) for d in answer["details"])


@pytest.mark.parametrize("value", ["x", 1, {"name": "x"}, ["x"], [["x"]], [None], [1]])
def test_lines_are_a_list_of_objects(value: Any, door: Door) -> None:
    """D9."""
    (place,) = (p for p in PLACES if p.name == "quotation create")
    request = place.request(door)
    request["payload"]["parts"] = value
    answer = door.as_(place.user, AGENT).post("/v1/preparations", request, expect=422)["error"]
    assert any(d["field"].startswith("parts") for d in answer["details"])


def test_edits_on_the_card_obey_the_same_rule(door: Door) -> None:
    """D4, D10: the person's edits are a payload too."""
    (place,) = (p for p in PLACES if p.name == "customer create")
    path = f"/v1/preparations/{door.prepare(place.user, **place.request(door))['preparationId']}/confirm"
    before = counts(door)
    keys = {*system_keys(), *ODD} - public_names(door, place)
    for some_keys in chunks(sorted(keys)):
        edits = {"edits": dict.fromkeys(some_keys, "1")}
        refused = door.as_(place.user).post(path, edits, expect=422)["error"]
        assert untold(refused, some_keys) == []
    assert counts(door) == before


def test_neither_is_it_taken_from_a_row_of_foreign_sql(door: Door) -> None:
    """D8, D9, D10: nobody prepared such a row; the worker is the one who refuses."""
    (place,) = (p for p in PLACES if p.name == "customer create")
    odd = [key for key in ODD if key not in public_names(door, place)]
    keys = [
        *odd,
        "sId",
        "sBrandsId",
        "tCreateDate",
        "bInvalid",
        "sMakePerson",
        "iStatusCode",
        "sSeal",
        "tenant",
    ]
    request = place.request(door)
    before = counts(door)
    with door.services.databases.store.engine.begin() as connection:
        ids = [
            foreign_insert(
                connection,
                sTargetFormId="customer",
                sMakePerson=place.user,
                sPayload=json.dumps(place.with_key(request, key, "1")["payload"], ensure_ascii=False),
            )
            for key in keys
        ]
    door.execute(*ids)
    codes = {op_id: door.as_(place.user).get(f"/v1/operations/{op_id}")["code"] for op_id in ids}
    assert set(codes.values()) == {StatusCode.PAYLOAD_INVALID}, [
        key for key, op_id in zip(keys, ids, strict=True) if codes[op_id] != StatusCode.PAYLOAD_INVALID
    ]
    after = counts(door)
    assert {name for name in after if after[name] != before.get(name)} <= {
        "ai_op_queue",
        "ai_op_event",
        "ai_audit_log",
        "ai_audit_head",
    }


def statements(door: Door, work: Callable[[], object]) -> str:
    """All SQL that ``work`` made this process send, without its parameters."""
    sent: list[str] = []

    def keep(_c: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    engine = door.services.databases.store.engine
    event.listen(engine, "before_cursor_execute", keep)
    try:
        work()
    finally:
        event.remove(engine, "before_cursor_execute", keep)
    return "\n".join(sent)


def marked(values: Iterable[str]) -> list[str]:
    return [f"Qx{n}{value}" for n, value in enumerate(values)]


def test_statements_are_made_of_the_catalogue_and_values_are_bound(door: Door) -> None:
    """D9: whatever a value says, it is in no statement's text; no key but the form's own gets that far."""
    (place,) = (p for p in PLACES if p.name == "customer create")
    names = marked(v for v in ODD if v.strip() == v and len(v) < 60)[::4]
    for name in names:
        operation = door.stage(
            place.user, formId="customer", opType="create", payload={"name": name, "type": "direct"}
        )
        sent = statements(door, lambda i=operation["id"]: door.execute(i))  # type: ignore[misc]
        assert "INSERT INTO" in sent
        assert "Qx" not in sent
        done = door.as_(place.user).get(f"/v1/operations/{operation['id']}")
        assert done["code"] == 200, (name, done)
    with door.services.databases.store.engine.connect() as connection:
        column = masters.customer.c.sCustomerName
        kept = connection.execute(select(column).where(column.like("Qx%")))
        assert sorted(kept.scalars()) == sorted(names)
