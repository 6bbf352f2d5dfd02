"""``opstage flower``: the real Flower of a real worker shows nothing to anyone who did not log in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from flower.urls import handlers

from migrations.run import upgrade
from staging.bootstrap import open_dispatcher
from staging.embedded.redis_server import EmbeddedRedis
from staging.embedded.spawn import free_port
from staging.messaging.celery_dispatcher import EXECUTE_TASK
from tests.support.fixtures import StartWorker
from tests.support.processes import LoggedProcess, settings_from
from tests.support.waiting import wait_until

_LOGIN = ("clerk", "right")


def environment(redis_url: str, folder: Path) -> dict[str, str]:
    return {
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_DATABASE_URL": f"sqlite:///{folder}/queue.db",
        "OPSTAGE_DATA_DIR": str(folder),
        "OPSTAGE_FLOWER_PORT": str(free_port()),
        "OPSTAGE_LOCALE": "en",
    }


@pytest.fixture
def env(redis_url: str, tmp_path: Path) -> dict[str, str]:
    return environment(redis_url, tmp_path)


class Flower(LoggedProcess):
    """``opstage flower``, up and answering."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        super().__init__([sys.executable, "-m", "staging.cli.main", "flower"], env, folder, "flower")
        self.url = f"http://127.0.0.1:{env['OPSTAGE_FLOWER_PORT']}"
        self.start(wait=False)
        self.wait_for_log("Visit me at", 30)

    def status(self, path: str, login: tuple[str, str] | None = None, **headers: str) -> int:
        return httpx.get(self.url + path, auth=login, headers=headers, timeout=10).status_code


@pytest.fixture(scope="module")
def flower(session_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flower]:
    """One for all tests that only look."""
    folder = tmp_path_factory.mktemp("flower")
    one = Flower(
        {**environment(session_redis.url, folder), "OPSTAGE_FLOWER_BASIC_AUTH": ":".join(_LOGIN)}, folder
    )
    yield one
    one.stop()


def paths() -> list[str]:
    """Every address Flower serves but its style sheets and scripts, with something in the place of each pattern."""
    patterns = [(hasattr(handler, "regex") and handler.regex.pattern) or handler[0] for handler in handlers]
    filled = [
        re.sub(r"\(\.[+*]\)", "celery@x", pattern).rstrip("$?").replace(".*", "/nowhere")
        for pattern in patterns
    ]
    return [path for path in filled if not path.startswith("/static/")]


def test_every_address_asks_for_the_login(flower: Flower) -> None:
    everything = paths()
    assert {"/", "/metrics", "/healthcheck", "/api/workers", "/tasks", "/nowhere"} <= set(everything)
    open_to_anyone = {path for path in everything if flower.status(path) != 401}
    open_to_a_wrong_password = {path for path in everything if flower.status(path, ("clerk", "wrong")) != 401}
    assert (open_to_anyone, open_to_a_wrong_password) == (set(), set())


def test_with_the_login_pages_metrics_and_health_are_there(flower: Flower) -> None:
    assert [flower.status(path, _LOGIN) for path in ("/", "/tasks", "/metrics", "/healthcheck")] == [200] * 4


def test_another_sites_page_cannot_act_with_the_users_login(flower: Flower) -> None:
    response = httpx.post(
        flower.url + "/api/worker/shutdown/celery@x", auth=_LOGIN, headers={"Origin": "https://evil.example"}
    )
    assert response.status_code == 403


def test_it_listens_on_loopback_only_and_keeps_the_password_off_the_command_line(flower: Flower) -> None:
    process = psutil.Process(flower.pid)
    listening = {c.laddr.ip for c in process.net_connections(kind="tcp") if c.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}
    assert _LOGIN[1] not in " ".join(process.cmdline())
    assert _LOGIN[1] not in flower.log()


def test_without_a_configured_login_a_random_one_is_printed_once(env: dict[str, str], tmp_path: Path) -> None:
    one = Flower(env, tmp_path)
    try:
        shown = re.findall(r"user (\S+)  password (\S+)", one.log())
        assert len(shown) == 1
        assert len(shown[0][1]) >= 20
        assert one.status("/metrics") == 401
        assert one.status("/metrics", shown[0]) == 200
    finally:
        one.stop()


def test_an_environment_that_would_open_its_api_does_not(env: dict[str, str], tmp_path: Path) -> None:
    one = Flower({**env, "FLOWER_UNAUTHENTICATED_API": "true"}, tmp_path)
    try:
        assert one.status("/api/workers") == 401
        assert one.status("/api/task/types") == 401
    finally:
        one.stop()


def test_it_shows_our_worker_and_each_execution_with_its_operation_ids(
    env: dict[str, str], tmp_path: Path, start_worker: StartWorker
) -> None:
    settings = settings_from(env)
    upgrade(settings.database_url, "queue")
    worker = start_worker(env, name="seen")
    one = Flower({**env, "OPSTAGE_FLOWER_BASIC_AUTH": ":".join(_LOGIN)}, tmp_path)

    def names() -> list[str]:
        return list(httpx.get(one.url + "/api/workers?refresh=1", auth=_LOGIN, timeout=15).json())

    try:
        wait_until(lambda: any(name.startswith("seen@") for name in names()), 20, "Flower lists the worker")
        assert worker.alive()
        assert open_dispatcher(settings).announce(["op-of-this-test-1", "op-of-this-test-2"])

        def executions() -> list[dict[str, Any]]:
            tasks = httpx.get(one.url + "/api/tasks", auth=_LOGIN, timeout=15).json().values()
            return [task for task in tasks if task["name"] == EXECUTE_TASK and task["state"] == "SUCCESS"]

        (task,) = wait_until(executions, 20, "Flower has the execution")
        assert "op-of-this-test-1" in task["args"]
        assert "op-of-this-test-2" in task["args"]
        page = httpx.get(f"{one.url}/task/{task['uuid']}", auth=_LOGIN, timeout=15).text
        assert "op-of-this-test-2" in page
    finally:
        one.stop()


def test_a_taken_port_is_an_error_that_names_the_setting(flower: Flower, tmp_path: Path) -> None:
    second = LoggedProcess(flower.command, flower.env, tmp_path, "second").start(wait=False)
    assert second.wait_exit(20) == 3
    assert "OPSTAGE_FLOWER_PORT" in second.log()
