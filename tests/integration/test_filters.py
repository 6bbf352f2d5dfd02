"""Typed filters of every form of the demo catalogue: what the schema says may be asked is answered rightly on each
database; everything else is refused with every bad field at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from staging.contracts.error import ErrorCode as E
from staging.contracts.form import FieldType, Form, FormField
from staging.contracts.query import PageRequest, QueryRequest, QueryResult
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor
from tests.databases import KINDS
from tests.support.demo_erp import FIRST, SECOND, DemoErp, demo_erp

MINE, THEIRS = Actor(FIRST, "u-zhao", locale="en"), Actor(SECOND, "u-gao", locale="en")
# By type, what no field of that type can be filtered by.
ALIEN: Mapping[FieldType, list[Any]] = {
    FieldType.STRING: [1, True, {"from": "a"}, {"contains": 7}, {"contains": "a", "x": 1}, "a\0b", "\ud800"],
    FieldType.TEXT: [1, {"to": "z"}, "a\0b"],
    FieldType.INTEGER: [2**63, -(2**63) - 1, Decimal("1.5"), "x", True, {"contains": "1"}, Decimal("1e400")],
    FieldType.DECIMAL: ["1,000", "一千", Decimal("1e400"), "0.30000000000000004", "1e3", True, "9" * 40],
    FieldType.BOOLEAN: ["false", 0, 1, {"from": False}],
    FieldType.DATE: ["2026-02-30", "yesterday", "2026-1-1", "2026-01-01T00:00:00Z", 20260101],
    FieldType.DATETIME: ["2026-01-01", "2026-01-01T00:00:00", "0000-01-01T00:00:00Z", 0],
    FieldType.CHOICE: ["nonsense", "", "😀", True, 2**63],
    FieldType.REFERENCE: ["no such record", 7, "😀", "a\0b", {"contains": "a"}],
}
ANYWHERE: list[Any] = [{}, [], [None], {"from": None}, {"from": 1, "above": 2}, [["x"]], {"$gt": ""}]


@pytest.fixture(scope="module", params=KINDS)
def erp(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoErp]:
    with demo_erp(request.param, tmp_path_factory.mktemp("filters")) as made:
        yield made


def ask(erp: DemoErp, form: Form, filter_: dict[str, Any], actor: Actor = MINE) -> QueryResult:
    request = QueryRequest(filter=filter_, page=PageRequest(size=200))
    return erp.adapter.query_records(actor, form.id, request)


def complaints(erp: DemoErp, form: Form, filter_: dict[str, Any]) -> dict[str, E]:
    with pytest.raises(OpstageError) as caught:
        ask(erp, form, filter_)
    assert caught.value.details, caught.value
    return {detail.field: detail.code for detail in caught.value.details}


def fields_of(form: Form) -> list[FormField]:
    return [field for field in form.fields if field.filterable]


def ways_to(field: FormField, value: Any) -> list[Any]:
    """Filters that find a record whose ``field`` is ``value``."""
    if value is None:
        return [None]
    ways = [value, [value]]
    if field.type in (FieldType.INTEGER, FieldType.DECIMAL, FieldType.DATE, FieldType.DATETIME):
        ways += [{"from": value}, {"to": value}, {"from": value, "to": value}]
    if field.type in (FieldType.STRING, FieldType.TEXT):
        ways += [{"contains": value[-3:].swapcase()}]
    return ways


def test_every_field_of_every_form_is_found_by_each_way_its_schema_offers(erp: DemoErp) -> None:
    asked = 0
    for form in erp.adapter.catalogue.forms:
        schema = erp.adapter.form_schema(MINE, form.id)["filterSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        assert set(schema["properties"]) == {"id", *(f.name for f in fields_of(form))}
        records = ask(erp, form, {}).items
        assert records, form.id
        record = records[len(records) // 2]
        assert [r["id"] for r in ask(erp, form, {"id": record["id"]}).items] == [record["id"]]
        for field in fields_of(form):
            value = record["values"][field.name]
            if field.type in (FieldType.STRING, FieldType.TEXT) and value == "":
                continue
            for way in ways_to(field, value):
                validator.validate({field.name: way})
                found = ask(erp, form, {field.name: way, "id": [record["id"]]}).items
                assert [r["id"] for r in found] == [record["id"]], (form.id, field.name, way)
                asked += 1
    assert asked > 200


@pytest.mark.parametrize("erp", ["sqlite"], indirect=True)
def test_what_a_field_cannot_be_is_refused_by_name(erp: DemoErp) -> None:
    for form in erp.adapter.catalogue.forms:
        schema = jsonschema.Draft202012Validator(erp.adapter.form_schema(MINE, form.id)["filterSchema"])
        for field in fields_of(form):
            for alien in [*ALIEN[field.type], *ANYWHERE]:
                found = complaints(erp, form, {field.name: alien})
                (path,) = found
                assert path.startswith(f"filter.{field.name}"), (form.id, path)
                assert path.replace(".from", "").replace(".to", "").count(".") <= 2
                if isinstance(alien, dict | list) and alien != {"from": None}:
                    assert not schema.is_valid({field.name: alien}), (form.id, field.name, alien)


def test_everything_bad_is_told_at_once(erp: DemoErp) -> None:
    form = next(f for f in erp.adapter.catalogue.forms if f.id == "sales_order")
    bad = {
        "id": [1],
        "customer": "nobody",
        "orderDate": {"from": "2026-02-30", "to": "x"},
        "totalAmount": {"from": "2", "to": "1"},
        "nonsense": 1,
        "brandsId": "B002",
        "memo": "x",
        "billNo": "fine",
    }
    assert complaints(erp, form, bad) == {
        "filter.id[0]": E.FIELD_INVALID,
        "filter.customer": E.REFERENCE_NOT_FOUND,
        "filter.orderDate.from": E.FIELD_INVALID,
        "filter.orderDate.to": E.FIELD_INVALID,
        "filter.totalAmount": E.FIELD_INVALID,
        "filter.nonsense": E.FIELD_UNKNOWN,
        "filter.brandsId": E.FIELD_UNKNOWN,
        "filter.memo": E.FIELD_INVALID,
    }


@pytest.mark.parametrize("erp", ["sqlite"], indirect=True)
def test_a_field_that_is_not_filterable_is_refused_and_the_others_are_named(erp: DemoErp) -> None:
    tried = 0
    for form in erp.adapter.catalogue.forms:
        for field in form.fields:
            if not field.filterable:
                with pytest.raises(OpstageError) as caught:
                    ask(erp, form, {field.name: None})
                assert caught.value.code is E.FIELD_INVALID
                assert fields_of(form)[0].name in caught.value.message("en")
                tried += 1
    assert tried > 15


def test_another_tenants_values_are_not_there(erp: DemoErp) -> None:
    for form in erp.adapter.catalogue.forms:
        theirs = ask(erp, form, {}, THEIRS).items
        assert ask(erp, form, {"id": [record["id"] for record in theirs]}).items == []
        for field in fields_of(form):
            if field.type is FieldType.REFERENCE and (key := theirs[0]["values"][field.name]):
                assert complaints(erp, form, {field.name: key}) == {
                    f"filter.{field.name}": E.REFERENCE_NOT_FOUND
                }


def test_values_no_record_has_are_answered_by_none(erp: DemoErp) -> None:
    form = next(f for f in erp.adapter.catalogue.forms if f.id == "customer")
    for filter_ in (
        {"name": "😀"},
        {"name": {"contains": "👨‍👩‍👧"}},
        {"name": "'; DROP TABLE elecustomer; --"},
        {"creditLimit": {"from": "9999999999999999.99"}},
        {"creditLimit": "-1"},
        {"createdAt": {"from": "9999-12-31T00:00:00Z"}},
        {"id": "😀" * 100},
    ):
        assert ask(erp, form, filter_).items == [], filter_


def test_records_are_found_by_a_reference_that_is_invalid_by_now(erp: DemoErp) -> None:
    form = next(f for f in erp.adapter.catalogue.forms if f.id == "sales_order")
    record = ask(erp, form, {}).items[0]
    customer = record["values"]["customer"]
    with erp.engine.begin() as connection:
        done = connection.exec_driver_sql(
            "UPDATE elecustomer SET bInvalid = 1 WHERE sId = '" + customer + "'"
            if erp.engine.dialect.name != "postgresql"
            else 'UPDATE elecustomer SET "bInvalid" = 1 WHERE "sId" = \'' + customer + "'"
        )
        assert done.rowcount == 1
    assert record["id"] in [r["id"] for r in ask(erp, form, {"customer": customer}).items]
