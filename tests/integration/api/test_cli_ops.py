"""``opstage token``, ``ops`` and ``todos`` through HTTP like anybody else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from staging.embedded.spawn import free_port
from tests.support.api import AGENT, B001, B002, OPERATOR, PERSON, Door
from tests.support.cli import Ran, opstage_here
from tests.support.demo_requests import new_supplier
from tests.support.processes import LoggedProcess
from tests.support.waiting import wait_until


def run(door: Door, token: str, *arguments: str) -> Ran:
    return opstage_here(
        door.folder, {**door.env, "OPSTAGE_API_URL": door.url, "OPSTAGE_TOKEN": token}, *arguments
    )


@pytest.fixture
def op_id(door: Door) -> str:
    """An operation of u-chen that waits for approval (104)."""
    return str(door.stage("u-chen", **new_supplier())["id"])


def test_a_token_is_issued_hashed_and_works(door: Door) -> None:
    who = ("--user", "u-chen", "--brands", "B001", "--subsidiary", "S01", "--kind", "person", "--ttl", "60")
    issued = run(door, "", "token", "issue", *who, "--json")
    assert issued.code == 0, issued.err
    token = issued.json()["token"]
    assert token not in (door.folder / "tokens.json").read_text()
    listed = run(door, token, "ops", "list", "--json")
    assert listed.code == 0, listed.err
    assert {o["maker"] for o in listed.json()["items"]} <= {"u-chen"}


def test_without_a_valid_token_the_hint_says_how_to_get_one(door: Door) -> None:
    for token, arguments in (("", ("todos",)), ("ops_nonsense", ("todos",)), ("", ("ops", "list"))):
        for locale in ("zh", "en"):
            env = {**door.env, "OPSTAGE_API_URL": door.url, "OPSTAGE_TOKEN": token, "OPSTAGE_LOCALE": locale}
            ran = opstage_here(door.folder, env, *arguments)
            assert ran.code == 1
            assert "OPSTAGE_TOKEN=$(opstage token issue" in ran.err
            assert ("for the demo" in ran.err) is (locale == "en")


def test_wrong_kinds_and_times_are_wrong_usage(door: Door) -> None:
    who = ("--user", "u-chen", "--brands", "B001", "--subsidiary", "S01")
    assert run(door, "", "token", "issue", *who, "--kind", "system").code == 2
    assert run(door, "", "token", "issue", *who, "--kind", "person", "--ttl", "0").code == 2
    assert run(door, "", "token", "issue", *who).code == 2


def test_operations_are_listed_shown_and_cancelled(door: Door, op_id: str) -> None:
    token = door.token("u-chen", PERSON)
    shown = run(door, token, "ops", "show", op_id, "--json").json()
    assert (shown["id"], shown["code"], [e["seq"] for e in shown["events"]]) == (op_id, 104, [1])
    assert op_id in run(door, token, "ops", "show", op_id).out
    assert op_id in run(door, token, "todos").out
    todos = run(door, token, "todos", "--json").json()
    assert op_id in [o["id"] for o in todos["running"]]
    cancelled = run(door, token, "ops", "cancel", op_id, "--reason", "不要了", "--json")
    assert (cancelled.code, cancelled.json()["code"], cancelled.json()["message"]) == (0, 450, "不要了")
    again = run(door, token, "ops", "cancel", op_id, "--json")
    assert (again.code, again.json()["error"]["code"]) == (1, "state_conflict")
    assert run(door, token, "ops", "retry", op_id).code == 1


def test_foreign_and_missing_ids_are_refused_alike(door: Door, op_id: str) -> None:
    stranger = door.token("u-gao", PERSON, B002)
    seen = run(door, stranger, "ops", "show", op_id, "--json")
    missing = run(door, stranger, "ops", "show", "no-such-id", "--json")
    assert (seen.code, seen.out) == (missing.code, missing.out)
    assert seen.json()["error"]["code"] == "operation_not_found"


def test_an_agent_cannot_retry_and_nobody_gets_in_without_a_token(door: Door, op_id: str) -> None:
    assert run(door, door.token("u-chen", AGENT), "ops", "retry", op_id).code == 1
    refused = run(door, "", "ops", "list", "--json")
    assert (refused.code, refused.json()["error"]["code"]) == (1, "unauthenticated")


def test_an_api_that_is_not_there_is_exit_3(door: Door) -> None:
    env = {**door.env, "OPSTAGE_API_URL": f"http://127.0.0.1:{free_port()}", "OPSTAGE_TOKEN": "x"}
    assert opstage_here(door.folder, env, "ops", "list").code == 3


def test_watch_tells_what_happens(door: Door, tmp_path: Path) -> None:
    token = door.token("u-admin", OPERATOR, B001)
    env = {**door.env, "OPSTAGE_API_URL": door.url, "OPSTAGE_TOKEN": token}
    command = [sys.executable, "-m", "staging.cli.main", "ops", "watch", "--json"]
    with LoggedProcess(command, env, tmp_path, "watch") as watching:

        def heard() -> list[str]:
            door.stage("u-chen", **new_supplier())
            return [json.loads(line)["opId"] for line in watching.log().splitlines() if line.startswith("{")]

        assert wait_until(heard, 30, "an event is printed", poll_s=0.5)
