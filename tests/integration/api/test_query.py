"""The Query Framework over operations and over a form's records: what is asked is what comes, and it is said so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.api import B002, OPERATOR, PERSON, Caller, Door
from tests.support.demo_requests import new_customer, word

WHERE = ("/v1/operations/query", "/v1/forms/customer/query")


@pytest.fixture(scope="module")
def person(door: Door) -> Caller:
    return door.as_("u-lin")


@pytest.fixture(scope="module")
def conversation(door: Door) -> tuple[str, list[str]]:
    """A conversation of seven operations, the first three of them executed, the fourth cancelled; oldest first."""
    name = word()
    ids = [door.stage("u-lin", **new_customer(), conversationId=name)["id"] for _ in range(7)]
    door.execute(*ids[:3])
    door.as_("u-lin").post(f"/v1/operations/{ids[3]}/cancel")
    return name, ids


def asked(person: Caller, path: str, **request: Any) -> dict[str, Any]:
    found: dict[str, Any] = person.post(path, request)
    assert found.keys() == {"items", "page", "appliedSort", "warnings"}
    assert found["page"].keys() == {"number", "size", "total", "hasMore"}
    return found


@pytest.mark.parametrize("path", WHERE)
def test_defaults_and_limits(path: str, person: Caller) -> None:
    found = asked(person, path)
    assert (found["page"]["number"], found["page"]["size"], found["warnings"]) == (1, 20, [])
    assert found["appliedSort"][-1]["field"] == "id"
    clamped = asked(person, path, page={"size": 5000})
    assert clamped["page"]["size"] == 200
    assert [w["code"] for w in clamped["warnings"]] == ["query_size_clamped"]


@pytest.mark.parametrize("path", WHERE)
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"page": {"number": 0}}, "query_page_invalid"),
        ({"page": {"number": -1}}, "query_page_invalid"),
        ({"page": {"size": 0}}, "query_page_invalid"),
        ({"page": {"number": 10**9}}, "query_page_invalid"),
        ({"page": {"number": "x"}}, "field_invalid"),
        ({"sort": [{"field": "payload"}]}, "query_sort_field_not_allowed"),
        ({"sort": [{"field": "sName; DROP TABLE x"}]}, "query_sort_field_not_allowed"),
        ({"sort": [{"field": "id", "direction": "DOWN"}]}, "query_direction_invalid"),
        ({"filter": {"nonsense": 1}}, "field_unknown"),
        ({"filter": {"brandsId": "B002"}}, "field_unknown"),
        ({"filter": []}, "field_invalid"),
        ({"nonsense": 1}, "field_unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_answered_is_refused(
    path: str, request_: dict[str, Any], code: str, person: Caller
) -> None:
    error = person.post(path, request_, expect=422)["error"]
    assert error["code"] == code
    if code == "query_sort_field_not_allowed":
        assert "createdAt" in error["hint"]


def test_pages_cover_everything_once(person: Caller, conversation: tuple[str, list[str]]) -> None:
    name, ids = conversation
    for sort in ([], [{"field": "status"}], [{"field": "code", "direction": "DESC"}, {"field": "createdAt"}]):
        seen: list[str] = []
        for number in range(1, 6):
            page = {"number": number, "size": 3}
            found = asked(person, WHERE[0], filter={"conversationId": name}, page=page, sort=sort)
            assert found["page"]["total"] == 7
            assert found["page"]["hasMore"] is (number < 3)
            seen += [o["id"] for o in found["items"]]
        assert sorted(seen) == sorted(ids)
        assert len(seen) == 7


def test_the_order_is_what_was_asked_for_and_is_stated(
    person: Caller, conversation: tuple[str, list[str]]
) -> None:
    name, ids = conversation
    found = asked(person, WHERE[0], filter={"conversationId": name})
    assert [o["id"] for o in found["items"]] == ids[::-1]
    assert found["appliedSort"] == [
        {"field": "createdAt", "direction": "DESC"},
        {"field": "id", "direction": "DESC"},
    ]
    sort = [{"field": "createdAt", "direction": "asc"}]
    found = asked(person, WHERE[0], filter={"conversationId": name}, sort=sort)
    assert [o["id"] for o in found["items"]] == ids
    assert found["appliedSort"][0] == {"field": "createdAt", "direction": "ASC"}


def test_each_filter_over_operations(person: Caller, conversation: tuple[str, list[str]]) -> None:
    name, ids = conversation

    def found(**filter_: Any) -> set[int]:
        items = asked(person, WHERE[0], filter={"conversationId": name, **filter_})["items"]
        return {ids.index(o["id"]) for o in items}

    assert found() == set(range(7))
    assert found(status=["success"]) == {0, 1, 2}
    assert found(status=["success", "fail"]) == {0, 1, 2, 3}
    assert found(code=[450]) == {3}
    assert found(code=[100, 200], status=["pending"]) == {4, 5, 6}
    assert found(formId=["customer"], opType=["create"]) == set(range(7))
    assert found(formId=["supplier"]) == set()
    third = person.get(f"/v1/operations/{ids[2]}")
    assert found(preparationId=third["preparationId"]) == {2}
    assert found(createdFrom=third["createdAt"]) == {2, 3, 4, 5, 6}
    assert found(createdTo=third["createdAt"]) == {0, 1}
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert found(createdFrom=ahead) == set()


def test_an_operator_may_ask_for_a_user_a_person_only_for_themselves(
    door: Door, conversation: tuple[str, list[str]]
) -> None:
    name, ids = conversation
    request = {"filter": {"conversationId": name, "user": ["u-lin"]}}
    assert len(door.as_("ops", OPERATOR).post(WHERE[0], request)["items"]) == len(ids)
    assert door.as_("u-zhao").post(WHERE[0], request)["items"] == []
    assert door.as_("ops", OPERATOR, B002).post(WHERE[0], request)["items"] == []


# --- records ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def customers(door: Door) -> tuple[str, list[dict[str, Any]]]:
    """Five customers whose names share a word, limits 0.10, 9, 10, 100.05 and 99999999999.99."""
    mark = word()
    limits = ["0.10", "9", "10", "100.05", "99999999999.99"]
    cities = ["杭州", "宁波", "杭州", None, "Hangzhou"]
    rows = []
    for position, (limit, city) in enumerate(zip(limits, cities, strict=True)):
        kind = "agent" if position == 4 else "direct"
        request = new_customer(name=f"{mark}%_{position}", creditLimit=limit, city=city, type=kind)
        done = door.run("u-lin", **request)
        assert done["code"] == 200, done
        rows.append({"id": done["resultBillId"], "limit": limit})
    return mark, rows


def test_records_are_found_by_typed_filters(
    person: Caller, customers: tuple[str, list[dict[str, Any]]]
) -> None:
    mark, rows = customers
    ids = [row["id"] for row in rows]

    def found(**filter_: Any) -> list[int]:
        request = {"filter": {"name": {"contains": mark}, **filter_}, "sort": [{"field": "creditLimit"}]}
        return [ids.index(item["id"]) for item in asked(person, WHERE[1], **request)["items"]]

    assert found() == [0, 1, 2, 3, 4]  # by amount, not by text
    assert found(creditLimit={"from": "9.00", "to": "100.05"}) == [1, 2, 3]
    assert found(creditLimit={"from": 10}) == [2, 3, 4]
    assert found(creditLimit="10.00") == [2]
    assert found(city="杭州") == [0, 2]
    assert found(city=["杭州", "宁波"]) == [0, 1, 2]
    assert found(city=None) == [3]
    assert found(city={"contains": "HANG"}) == [4]
    assert found(type="agent") == [4]
    assert found(name={"contains": f"{mark}%_"}) == [0, 1, 2, 3, 4]  # as text, not as a pattern
    assert found(name={"contains": "%"}) == [0, 1, 2, 3, 4]
    assert found(name={"contains": f"{mark}x"}) == []
    assert found(invalid=False) == [0, 1, 2, 3, 4]
    assert found(createdAt={"from": "2026-01-01T00:00:00Z"}) == [0, 1, 2, 3, 4]
    assert found(createdAt={"to": "2026-01-01T00:00:00Z"}) == []
    assert found(id=ids[1:3]) == [1, 2]
    assert found(makePerson="u-lin") == [0, 1, 2, 3, 4]


def test_amounts_come_out_exactly(person: Caller, customers: tuple[str, list[dict[str, Any]]]) -> None:
    mark, _ = customers
    request = {
        "filter": {"name": {"contains": mark}},
        "sort": [{"field": "creditLimit", "direction": "DESC"}],
    }
    items = asked(person, WHERE[1], **request)["items"]
    amounts = [item["values"]["creditLimit"] for item in items]
    assert amounts == ["99999999999.99", "100.05", "10.00", "9.00", "0.10"]
    assert items[0].keys() == {"id", "label", "values", "texts"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("creditLimit", "1,000"),
        ("creditLimit", {"from": "一千"}),
        ("creditLimit", {"contains": "1"}),
        ("createdAt", {"from": "yesterday"}),
        ("createdAt", {"from": "2026-11-30"}),
        ("type", "nonsense"),
        ("invalid", "false"),
        ("name", {"from": "a"}),
        ("name", {"contains": 7}),
        ("name", {"contains": "a", "x": 1}),
        ("paymentDays", 30),  # not filterable
        ("address", "x"),  # nor this
        ("city", {}),
    ],
    ids=str,
)
def test_a_filter_that_does_not_fit_its_field_is_refused(field: str, value: Any, person: Caller) -> None:
    error = person.post(WHERE[1], {"filter": {field: value}}, expect=422)["error"]
    assert error["details"][0]["field"].startswith(f"filter.{field}")


def test_several_bad_filters_are_reported_together(person: Caller) -> None:
    filter_ = {"creditLimit": "x", "type": "y", "nonsense": 1}
    error = person.post(WHERE[1], {"filter": filter_}, expect=422)["error"]
    assert {d["field"] for d in error["details"]} == {f"filter.{name}" for name in filter_}


def test_only_the_own_companys_records_are_found(door: Door) -> None:
    mine = {item["id"] for item in asked(door.as_("u-lin"), WHERE[1], page={"size": 200})["items"]}
    theirs = {
        item["id"] for item in asked(door.as_("u-gao", PERSON, B002), WHERE[1], page={"size": 200})["items"]
    }
    assert mine
    assert theirs
    assert not mine & theirs


def test_without_a_grant_there_is_nothing_to_query(door: Door) -> None:
    trainee = door.as_("u-zhou")
    assert trainee.get("/v1/forms") == []
    for path in ("/v1/forms/customer", "/v1/forms/customer/records/KH0001"):
        assert trainee.get(path, expect=403)["error"]["code"] == "forbidden"
    assert trainee.post(WHERE[1], {}, expect=403)["error"]["code"] == "forbidden"


def test_forms_are_found_by_words_in_either_language(door: Door) -> None:
    for q in ("客户", "customer", "CUSTOM"):
        assert "customer" in [form["formId"] for form in door.as_("u-lin").get("/v1/forms", params={"q": q})]
    assert door.as_("u-lin").get("/v1/forms", params={"q": "no such form"}) == []


def test_choices_of_a_reference_are_paged_and_searched(person: Caller) -> None:
    path = "/v1/forms/quotation/fields/customer/options"
    first = person.get(path)
    assert len(first["items"]) == 20
    assert first["page"]["hasMore"] is True
    second = person.get(path, params={"page": 2})
    assert not {i["id"] for i in first["items"]} & {i["id"] for i in second["items"]}
    name = first["items"][0]["name"]
    assert first["items"][0]["id"] in [i["id"] for i in person.get(path, params={"q": name})["items"]]
    assert person.get("/v1/forms/quotation/fields/nonsense/options", expect=422)
