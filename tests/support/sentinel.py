"""A Redis Sentinel of a test's own, which watches one Redis and promotes its replica when it is gone."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import ClassVar, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from staging.embedded.finder import find_redis_server
from staging.embedded.server import EmbeddedServer
from tests.support.private import EmbeddedRedis
from tests.support.services import missing

MASTER = "opstage"
_DOWN_AFTER_MS = 1000


class PrivateSentinel(EmbeddedServer):
    """Alone, so its own word that the master is gone is enough."""

    name: ClassVar[str] = "sentinel"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path, master: EmbeddedRedis) -> None:
        super().__init__(data_dir)
        self._program = find_redis_server().executable
        if self._program is None:
            missing("there is no Redis to start", "install redis-server")
        self._master = master

    @property
    def url(self) -> str:
        """As the broker's URL: user and password are the Redis's."""
        who = self._master.url.partition("://")[2].partition("@")[0]
        return f"sentinel://{who}@127.0.0.1:{self.port}/0"

    def master_port(self) -> int:
        """Port of the Redis that is master now."""
        _, port = cast("tuple[str, int]", self._client().sentinel_get_master_addr_by_name(MASTER))
        return port

    def knows_a_replica(self) -> bool:
        """True once there is somebody to promote."""
        found = self._client().sentinel_slaves(MASTER)
        return any(not (one["is_disconnected"] or one["is_sdown"]) for one in found)

    def _prepare(self) -> None:
        password = self._master.url.partition(":")[2].partition(":")[2].partition("@")[0]
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f'dir "{self.data_dir}"',
            f"sentinel monitor {MASTER} 127.0.0.1 {self._master.port} 1",
            f"sentinel auth-user {MASTER} default",
            f"sentinel auth-pass {MASTER} {password}",
            f"sentinel down-after-milliseconds {MASTER} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {MASTER} 5000",
        ]
        self._write_private(self.data_dir / "sentinel.conf", "\n".join(lines) + "\n")

    def _command(self) -> list[str | Path]:
        return [str(self._program), self.data_dir / "sentinel.conf", "--sentinel"]

    def _answers(self) -> bool:
        try:
            return bool(self._client().ping())
        except redis.exceptions.RedisError:
            return False

    def _client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=1.0, retry=Retry(NoBackoff(), 0))
