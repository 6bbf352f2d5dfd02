"""The page's cookie, static tokens, and that no other site can act through either; no token in any address or log."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from staging.api.auth.static import StaticAuthenticator, issue_token
from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError
from staging.domain.identity import ActorKind
from tests.support.api import AGENT, OPERATOR, PERSON, SERVICE, Door
from tests.support.demo_requests import new_customer
from tests.support.processes import ROOT


@pytest.fixture
def browser(door: Door) -> Iterator[httpx.Client]:
    """No token; the Origin of the page, as browsers send it."""
    with httpx.Client(base_url=door.url, headers={"Origin": door.url}, timeout=20) as client:
        yield client


def signed_in(browser: httpx.Client, door: Door, user: str = "u-lin") -> None:
    answer = browser.post("/session", json={"token": door.as_(user).token})
    assert answer.status_code == 204


def test_the_cookie_acts_for_the_person(browser: httpx.Client, door: Door) -> None:
    signed_in(browser, door)
    assert browser.get("/v1/me").json()["userId"] == "u-lin"
    prepared = browser.post("/v1/preparations", json=new_customer())
    assert prepared.status_code == 200
    answer = browser.post(f"/v1/preparations/{prepared.json()['preparationId']}/confirm")
    assert answer.status_code == 202


def test_scripts_and_other_sites_do_not_get_the_cookie(browser: httpx.Client, door: Door) -> None:
    answer = browser.post("/session", json={"token": door.as_("u-lin").token})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain=" not in cookie
    behind_tls = browser.post(
        "/session", json={"token": door.as_("u-lin").token}, headers={"X-Forwarded-Proto": "https"}
    )
    assert "secure" in behind_tls.headers["set-cookie"].lower()


FOREIGN: dict[str, dict[str, str]] = {
    "another site": {"Origin": "https://evil.example"},
    "a subdomain": {"Origin": "http://evil.127.0.0.1"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "no origin": {"Origin": ""},
    "a file": {"Origin": "null"},
    "same host in the name": {"Origin": "http://127.0.0.1.evil.example"},
    "the browser says cross-site": {"Sec-Fetch-Site": "cross-site"},
    "the browser says same-site": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_another_site_cannot_act_with_the_cookie(
    name: str, method: str, browser: httpx.Client, door: Door
) -> None:
    signed_in(browser, door)
    prepared = browser.post("/v1/preparations", json=new_customer()).json()["preparationId"]
    path = f"/v1/preparations/{prepared}" + ("/confirm" if method == "POST" else "")
    answer = browser.request(method, path, headers=FOREIGN[name])
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert browser.get(f"/v1/preparations/{prepared}").status_code == 200


@pytest.mark.parametrize("name", FOREIGN)
def test_another_site_can_neither_sign_in_nor_out(name: str, browser: httpx.Client, door: Door) -> None:
    """Signing a victim in as the attacker would put the victim's work into the attacker's account."""
    body = {"token": door.as_("u-lin").token}
    assert browser.post("/session", json=body, headers=FOREIGN[name]).status_code == 403
    signed_in(browser, door)
    assert browser.delete("/session", headers=FOREIGN[name]).status_code == 403
    assert browser.get("/v1/me").status_code == 200


def test_a_header_decides_over_the_cookie(browser: httpx.Client, door: Door) -> None:
    """An agent that shares the browser's jar stays an agent."""
    signed_in(browser, door)
    prepared = door.prepare("u-lin", **new_customer())["preparationId"]
    agent = {"Authorization": f"Bearer {door.as_('u-lin', AGENT).token}"}
    assert browser.post(f"/v1/preparations/{prepared}/confirm", headers=agent).status_code == 403
    assert browser.get("/v1/me", headers={"Authorization": "Bearer nonsense"}).status_code == 401


@pytest.mark.parametrize(("kind", "status"), [(PERSON, 204), (OPERATOR, 204), (AGENT, 403), (SERVICE, 403)])
def test_only_people_sign_in(kind: ActorKind, status: int, browser: httpx.Client, door: Door) -> None:
    answer = browser.post("/session", json={"token": door.token("u-lin", kind)})
    assert answer.status_code == status
    assert bool(browser.cookies) == (status == 204)


def test_signing_out_forgets_the_cookie(browser: httpx.Client, door: Door) -> None:
    signed_in(browser, door)
    assert browser.delete("/session").status_code == 204
    assert browser.get("/v1/me").status_code == 401


def test_a_token_in_the_address_is_worth_nothing(door: Door) -> None:
    token = door.as_("u-lin").token
    for query in (f"?token={token}", f"?access_token={token}", f"?authorization=Bearer%20{token}"):
        assert httpx.get(f"{door.url}/v1/me{query}").status_code == 401


def test_no_token_is_in_the_log_whoever_sent_it_however(browser: httpx.Client, door: Door) -> None:
    tokens = [door.as_("u-lin").token, door.as_("u-lin", AGENT).token]
    signed_in(browser, door)
    for token in tokens:
        httpx.get(f"{door.url}/v1/me?token={token}")
        httpx.get(f"{door.url}/v1/operations/{token}")
        httpx.get(f"{door.url}/{token}")
        httpx.get(f"{door.url}/v1/me", headers={"Authorization": token})
        httpx.post(f"{door.url}/session", json={"token": token, "x": token})
        httpx.post(
            f"{door.url}/v1/preparations", json={token: token}, headers={"Authorization": f"Bearer {token}"}
        )
    log = door.api.log()
    assert " /v1/me 401 " in log  # it does log
    for caller in door.callers.values():
        assert caller.token not in log
        assert caller.token[:20] not in log


# --- the file of static tokens ---------------------------------------------------------------------------------------


def issue(path: Path, user: str = "u-lin", ttl_s: float = 60) -> str:
    return issue_token(path, user=user, brands="B001", subsidiary="S01", kind=PERSON, ttl_s=ttl_s)


def test_the_file_holds_no_token_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = issue(path)
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert StaticAuthenticator(path).authenticate(token).actor.user_id == "u-lin"


def test_a_removed_token_stops_working_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token, other = issue(path), issue(path, "u-chen")
    authenticator = StaticAuthenticator(path)
    authenticator.authenticate(token)
    left = [entry for entry in json.loads(path.read_text()) if entry["user"] != "u-lin"]
    path.write_text(json.dumps(left))
    with pytest.raises(OpstageError) as caught:
        authenticator.authenticate(token)
    assert caught.value.code == ErrorCode.UNAUTHENTICATED
    assert authenticator.authenticate(other).actor.user_id == "u-chen"
    path.unlink()
    with pytest.raises(OpstageError):
        authenticator.authenticate(other)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"sha256": "x"}]', "[", '[{"user": "u-lin"}]'])
def test_a_damaged_file_lets_nobody_in(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = issue(path)
    path.write_text(content)
    with pytest.raises(OpstageError) as caught:
        StaticAuthenticator(path).authenticate(token)
    assert caught.value.code in (ErrorCode.UNAVAILABLE, ErrorCode.UNAUTHENTICATED)


def test_tokens_issued_by_many_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(issue(path))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    authenticator = StaticAuthenticator(path)
    assert len({authenticator.authenticate(token).token_id for token in tokens}) == 12


def test_what_has_expired_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    issue(path, "u-old", ttl_s=-1)
    issue(path, "u-new")
    assert [entry["user"] for entry in json.loads(path.read_text())] == ["u-new"]


def test_an_api_whose_settings_are_missing_does_not_start(tmp_path: Path) -> None:
    env = {**os.environ, "OPSTAGE_AUTH": "introspect", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "staging.api.serve"], env=env, cwd=tmp_path, capture_output=True, timeout=60
    )
    assert done.returncode != 0
    assert b"OPSTAGE_INTROSPECT_URL" in done.stderr
