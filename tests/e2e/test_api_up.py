"""The doors of ``opstage up`` as its users walk through them: sign in, prepare, confirm, a real worker, live status."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from staging.embedded.runtime import running_env
from tests.e2e.test_up import Up
from tests.support.api import Caller
from tests.support.cli import Ran, opstage
from tests.support.demo_requests import new_customer
from tests.support.private import open_folder
from tests.support.processes import LoggedProcess, gone
from tests.support.sse import Listener
from tests.support.waiting import wait_until

READY = "Uvicorn running on"


class Set:
    """A running set, and commands on its data directory: they find it by themselves."""

    def __init__(self, up: Up, other: Path) -> None:
        self.up, self._other = up, other
        ((self.url,),) = [re.findall(r"my todos +(\S+)/", up.log())]

    def opstage(self, *arguments: str, token: str = "") -> Ran:
        env = {"OPSTAGE_DATA_DIR": str(self.up.folder), "OPSTAGE_LOCALE": "en"}
        return opstage(self._other, {**env, **({"OPSTAGE_TOKEN": token} if token else {})}, *arguments)

    def token(self, user: str, kind: str) -> str:
        who = ("--user", user, "--brands", "B001", "--subsidiary", "S01", "--kind", kind)
        issued = self.opstage("token", "issue", *who)
        assert issued.code == 0, issued.err
        return issued.out.strip()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Set]:
    with open_folder() as folder:
        up = Up(folder).ready()
        up.wait_for_log(READY, 60)
        yield Set(up, tmp_path_factory.mktemp("elsewhere"))
        up.send(signal.SIGTERM)
        assert up.wait_exit(40) == 0
        wait_until(lambda: all(gone(pid) for pid in up.family), 20, "nothing is left")


def confirmed(running: Set, **request: Any) -> tuple[str, Caller]:
    agent = Caller(running.url, running.token("u-lin", "agent"))
    person = Caller(running.url, running.token("u-lin", "person"))
    prepared = agent.post("/v1/preparations", request or new_customer())
    path = f"/v1/preparations/{prepared['preparationId']}/confirm"
    agent.post(path, expect=403)
    (operation,) = person.post(path, expect=202)["operations"]
    agent.close()
    return str(operation["id"]), person


def test_it_prints_where_the_page_is_and_how_to_get_in(running: Set) -> None:
    page = httpx.get(running.url + "/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert (
        "opstage token issue --user u-zhao --brands B001 --subsidiary S01 --kind person" in running.up.log()
    )
    assert httpx.get(running.url + "/readyz").json() == {"database": True, "redis": True, "broker": True}


def test_a_confirmed_change_is_executed_while_the_stream_tells(running: Set) -> None:
    agent = running.token("u-lin", "agent")
    with Listener(running.url + "/v1/events", agent) as listener:
        op_id, person = confirmed(running)
        listener.wait_for(3, timeout_s=30)
        assert listener.keys == [(op_id, 1), (op_id, 2), (op_id, 3)]
        assert listener.events[-1].data["code"] == 200
    done = person.get(f"/v1/operations/{op_id}/status?wait=30&after=2")
    assert done["resultBillId"]
    record = person.get(f"/v1/forms/customer/records/{done['resultBillId']}")
    assert record["values"]["makePerson"] == "u-lin"


def test_the_command_line_finds_the_running_set(running: Set) -> None:
    op_id, person = confirmed(running)
    wait_until(lambda: person.get(f"/v1/operations/{op_id}")["code"] == 200, 30, "it is executed")
    token = running.token("u-lin", "person")
    listed = running.opstage("ops", "list", "--json", token=token)
    assert op_id in [o["id"] for o in listed.json()["items"]]
    shown = running.opstage("ops", "show", op_id, "--json", token=token).json()
    assert [e["code"] for e in shown["events"]] == [100, 101, 200]
    assert op_id in running.opstage("todos", token=token).out
    refused = running.opstage("ops", "cancel", op_id, token=token)
    assert (refused.code, "does not allow" in refused.err) == (1, True)


def test_an_operator_watches_the_queue_live(running: Set, tmp_path: Path) -> None:
    env = {
        "OPSTAGE_DATA_DIR": str(running.up.folder),
        "OPSTAGE_TOKEN": running.token("ops", "operator"),
    }
    command = [sys.executable, "-m", "staging.cli.main", "ops", "watch", "--json"]
    with LoggedProcess(command, env, tmp_path, "watch") as watching:

        def seen() -> list[dict[str, Any]]:
            return [json.loads(line) for line in watching.log().splitlines() if line.startswith("{")]

        def moved() -> bool:
            confirmed(running)
            return bool(seen())

        wait_until(moved, 30, "the first event", poll_s=0.5)
        op_id, _ = confirmed(running)
        wait_until(
            lambda: [e["code"] for e in seen() if e["opId"] == op_id] == [100, 101, 200],
            30,
            "all of its events",
        )
        watching.send(signal.SIGINT)
        assert watching.wait_exit(10) == 130


def test_no_password_and_no_key_is_in_the_sets_output(running: Set) -> None:
    env = running_env(running.up.folder)
    secrets = {urlsplit(env[f"OPSTAGE_{name}_URL"]).password for name in ("REDIS", "BROKER")}
    secrets.add(env["OPSTAGE_SEAL_KEY"])
    assert all(secrets)
    confirmed(running)
    for secret in secrets:
        assert str(secret) not in running.up.log()


def test_no_token_is_in_the_sets_output(running: Set) -> None:
    tokens = [running.token(user, kind) for user, kind in (("u-lin", "person"), ("u-zhao", "agent"))]
    for token in tokens:
        httpx.get(f"{running.url}/v1/me?token={token}", headers={"Authorization": f"Bearer {token}"})
        httpx.get(f"{running.url}/v1/operations/{token}", headers={"Authorization": f"Bearer {token}"})
    wait_until(lambda: "/v1/me 422" in running.up.log(), 10, "the requests are logged")
    for token in tokens:
        assert token not in running.up.log()
