"""Texts of ours are in the reader's language, whatever the language of whoever confirmed; the ERP's stay as written."""

from __future__ import annotations

from typing import Any

from tests.support.api import AGENT, OPERATOR, Caller, Door
from tests.support.demo_requests import new_customer, word


def read(caller: Caller, path: str, locale: str) -> dict[str, Any]:
    found: dict[str, Any] = caller.get(path, headers={"Accept-Language": locale})
    return found


def test_a_status_is_said_in_the_readers_language(door: Door) -> None:
    path = f"/v1/operations/{door.stage('u-lin', **new_customer())['id']}"  # confirmed in English
    for address in (path, f"{path}/status"):
        assert read(door.as_("u-lin"), address, "en")["message"] == "submitted, waiting for a worker"
        assert read(door.as_("u-lin"), address, "zh")["message"] == "已提交，等待执行"
    door.as_("u-lin").post(f"{path}/cancel")  # without a reason of one's own
    assert read(door.as_("u-lin"), path, "zh")["message"] == "已被取消或驳回"


def test_what_a_person_wrote_and_what_the_erp_said_stay_as_they_are(door: Door) -> None:
    cancelled = door.stage("u-lin", **new_customer())["id"]
    door.as_("u-lin").post(f"/v1/operations/{cancelled}/cancel", {"reason": "改主意了"})
    assert read(door.as_("u-lin"), f"/v1/operations/{cancelled}", "en")["message"] == "改主意了"
    done = door.run("u-lin", **new_customer())
    assert done["message"].endswith("created")
    assert read(door.as_("u-lin"), f"/v1/operations/{done['id']}", "zh")["message"] == done["message"]


def test_a_probable_duplicate_is_told_in_the_readers_language(door: Door) -> None:
    name = word()
    door.run("u-lin", **new_customer(name=name))
    path = f"/v1/preparations/{door.prepare('u-lin', **new_customer(name=name))['preparationId']}"

    def warning(locale: str) -> str:
        (told,) = read(door.as_("u-lin"), path, locale)["preview"]["warnings"]
        assert told["code"] == "possible_duplicate"
        return str(told["message"])

    assert warning("en").startswith("This may duplicate")
    assert warning("zh").startswith("可能与已有单据")


def test_an_operator_reads_a_forms_labels_but_none_of_its_records(door: Door) -> None:
    operator = door.as_("ops", OPERATOR)
    schema = read(operator, "/v1/forms/customer", "zh")
    assert (schema["label"], schema["opTypes"]) == ("客户", [])
    assert operator.post("/v1/forms/customer/query", {}, expect=403)["error"]["code"] == "forbidden"
    assert operator.get("/v1/forms/customer/records/KH0001", expect=403)
    assert door.as_("u-zhou", AGENT).get("/v1/forms/customer", expect=403)
