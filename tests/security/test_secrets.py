"""D19 (A34): passwords, keys and tokens are in no log, no answer and no finding, least of all when things break."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from staging.api.auth.static import issue_token
from staging.domain.identity import ActorKind
from staging.embedded.spawn import free_port
from tests.support.api import ApiProcess
from tests.support.cli import opstage_here
from tests.support.fixtures import StartWorker
from tests.support.private import EmbeddedRedis
from tests.support.processes import BeatProcess

DATABASE, SEAL, FLOWER = "s3cret-of-the-database", "s3cret-of-the-seal-000000000000", "s3cret-of-flower"


def test_no_secret_shows_while_database_and_redis_are_away(
    private_redis: EmbeddedRedis,
    tmp_path: Path,
    start_worker: StartWorker,
    start_beat: Callable[[Mapping[str, str]], BeatProcess],
) -> None:
    """Nothing listens where the database should be; then Redis dies under all of them."""
    redis_password = urlsplit(private_redis.url).password
    assert redis_password
    env = {
        "OPSTAGE_DATABASE_URL": f"postgresql://op:{DATABASE}@127.0.0.1:{free_port()}/x",
        "OPSTAGE_REDIS_URL": private_redis.url,
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_SEAL_KEY": SEAL,
        "OPSTAGE_FLOWER_BASIC_AUTH": f"clerk:{FLOWER}",
        "OPSTAGE_SWEEP_INTERVAL_S": "0.3",
    }
    token = issue_token(
        tmp_path / "tokens.json",
        user="u-lin",
        brands="B001",
        subsidiary="S01",
        kind=ActorKind.PERSON,
        ttl_s=600,
    )
    headers = {"Authorization": f"Bearer {token}"}
    worker, beat = start_worker(env), start_beat(env)
    with ApiProcess(env, tmp_path) as api:

        def ask() -> str:
            answers = [
                httpx.request(method, api.url + path, headers=headers, json=body, timeout=60)
                for method, path, body in (
                    ("GET", "/v1/operations/x", None),
                    ("POST", "/v1/preparations/x/confirm", {}),
                    ("GET", "/readyz", None),
                )
            ]
            assert {answer.status_code for answer in answers} == {503}
            return "".join(f"{answer.headers} {answer.text}" for answer in answers)

        said = ask()
        worker.wait_for_log("connection failed", 60)  # the sweep that beat asked for
        private_redis.kill9()
        worker.wait_for_log("Connection to broker lost", 60)
        beat.wait_for_log("Connection refused", 60)
        said += ask()
        logs = {process.name: process.log() for process in (worker, beat, api)}
    ran = [
        opstage_here(
            tmp_path, {**env, "OPSTAGE_TOKEN": token, "OPSTAGE_API_URL": "http://127.0.0.1:9"}, *words
        )
        for words in (
            ("doctor", "--json"),
            ("doctor",),
            ("audit", "verify"),
            ("db", "current"),
            ("ops", "archive", "--older-than", "30"),
            ("ops", "list", "--json"),
        )
    ]
    assert [one.code for one in ran] == [3] * len(ran)
    told = {finding["service"] for finding in json.loads(ran[0].out) if finding["unreachable"]}
    assert {"queue", "redis"} <= told
    logs |= {"answers": said, "commands": "".join(one.out + one.err for one in ran)}
    assert "503" in logs["api"]
    for name, text in logs.items():
        for secret in (DATABASE, SEAL, FLOWER, redis_password, token):
            assert secret not in text, f"a secret in {name}"
