"""The environment Opstage's processes run in: servers as configured, embedded ones where nothing is configured."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from staging.embedded.errors import embedded_error
from staging.embedded.finder import find_redis_server
from staging.embedded.postgres_server import EmbeddedPostgres
from staging.embedded.redis_server import EmbeddedRedis
from staging.settings import EMBEDDED_POSTGRES, Settings

_STATE_FILE = "running.json"


@contextmanager
def runtime_env(settings: Settings) -> Iterator[dict[str, str]]:
    """Yield the OPSTAGE_* variables child processes need; embedded servers run as long as the block does.

    Redis is embedded unless OPSTAGE_REDIS_URL is set, PostgreSQL only for OPSTAGE_DATABASE_URL=embedded-postgres;
    without any database setting it is SQLite in the data directory. Paths are made absolute. The values hold
    passwords: hand them on as environment, never print them. Raises EmbeddedServerError where a server fails.
    """
    data_dir = settings.data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as servers:
        configured = configured_redis(settings)
        found = find_redis_server(configured)
        redis_url = (
            configured or servers.enter_context(EmbeddedRedis(data_dir / "redis", found.executable)).url
        )
        postgres_url = ""
        if EMBEDDED_POSTGRES in (settings.database_url, settings.erp_database_url):
            postgres_url = servers.enter_context(EmbeddedPostgres(data_dir / "postgres")).url
        env = {
            "OPSTAGE_DATA_DIR": str(data_dir),
            "OPSTAGE_REDIS_URL": redis_url,
            "OPSTAGE_BROKER_URL": settings.broker_url.get_secret_value() or redis_url,
            "OPSTAGE_DATABASE_URL": _database_url(settings, data_dir, postgres_url),
        }
        env["OPSTAGE_SEAL_KEY"] = settings.seal_key.get_secret_value() or _kept_secret(data_dir / "seal.key")
        if settings.erp_database_url:
            wants_embedded = settings.erp_database_url == EMBEDDED_POSTGRES
            env["OPSTAGE_ERP_DATABASE_URL"] = postgres_url if wants_embedded else settings.erp_database_url
        yield env


def _kept_secret(path: Path) -> str:
    """A random secret that lives with the data: made once, readable by its owner only."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
    return path.read_text().strip()


def configured_redis(settings: Settings) -> str:
    """The Redis somebody set by environment or .env; empty where it is only the default."""
    return settings.redis_url.get_secret_value() if "redis_url" in settings.model_fields_set else ""


def _database_url(settings: Settings, data_dir: Path, postgres_url: str) -> str:
    if settings.database_url == EMBEDDED_POSTGRES:
        return postgres_url
    if "database_url" in settings.model_fields_set:
        return settings.database_url
    return f"sqlite:///{data_dir / 'opstage.db'}"


@contextmanager
def announced(env: Mapping[str, str]) -> Iterator[None]:
    """Let other commands on the same data directory find the servers of ``env`` while the block runs.

    Raises EmbeddedServerError where another set already runs there. The file is private: it holds passwords.
    """
    path = Path(env["OPSTAGE_DATA_DIR"]) / _STATE_FILE
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as state:
        try:
            fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise embedded_error(
                f"{path.parent} 里已有一套 Opstage 在运行。请先停止它，或设置另一个 OPSTAGE_DATA_DIR。",
                f"A set of Opstage already runs in {path.parent}. Stop it, or set another OPSTAGE_DATA_DIR.",
            ) from None
        state.truncate()
        json.dump(dict(env), state)
        state.flush()
        try:
            yield
        finally:
            state.seek(0)
            state.truncate()


def running_env(data_dir: Path) -> dict[str, str]:
    """The variables of the set that runs on ``data_dir`` right now; empty where none does."""
    path = data_dir / _STATE_FILE
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as state:
        try:
            fcntl.flock(state, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody holds it, so what it says is true
            env: dict[str, str] = json.loads(state.read() or "{}")
            return env
    return {}  # left behind by a set that was killed
