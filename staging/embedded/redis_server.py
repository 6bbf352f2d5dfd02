"""A private Redis or Valkey: broker and pub/sub of a machine that has none."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from staging.embedded.errors import embedded_error
from staging.embedded.finder import find_redis_server
from staging.embedded.server import EmbeddedServer
from staging.embedded.spawn import Account


class EmbeddedRedis(EmbeddedServer):
    """Redis on loopback with a random password, append-only file (fsync each second) and no eviction."""

    name: ClassVar[str] = "redis"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(
        self,
        data_dir: Path,
        executable: Path | None = None,
        *,
        port: int | None = None,
        account: Account | None = None,
        options: Mapping[str, str] | None = None,
        password: str | None = None,
    ) -> None:
        """``executable`` None: what ``find_redis_server`` finds. ``options``: further lines of its configuration.
        ``password`` None: a random one."""
        super().__init__(data_dir, port=port, account=account)
        executable = executable or find_redis_server().executable
        if executable is None:
            raise embedded_error("没有可启动的 Redis 程序", "There is no Redis program to start")
        self.executable = executable
        self._options = dict(options or {})
        self._password = password or secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        # The user is named: redis-cli would send an empty one, and be refused.
        return f"redis://default:{self._password}@127.0.0.1:{self.port}/0"

    def client(self, timeout_s: float = 1.0) -> redis.Redis:
        """A connection of its own that reports the first error instead of retrying; the caller closes it."""
        no_retry = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(
            self.url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=no_retry
        )

    def _prepare(self) -> None:
        lines = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "protected-mode": "yes",
            "requirepass": self._password,
            "dir": f'"{self.data_dir}"',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            **self._options,
        }
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        self._write_private(self.data_dir / "redis.conf", text)

    def _command(self) -> list[str | Path]:
        return [self.executable, self.data_dir / "redis.conf"]

    def _answers(self) -> bool:
        client = self.client(timeout_s=0.5)
        try:
            return bool(client.ping())
        except redis.exceptions.RedisError:
            return False  # not yet: refused, or still loading its append-only file
        finally:
            client.close()
