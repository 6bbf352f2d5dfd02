"""A RabbitMQ of a test's own, with an epmd of its own, run by the test's user."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

import amqp  # type: ignore[import-untyped]

from staging.embedded.server import EmbeddedServer
from staging.embedded.spawn import free_port
from tests.support.services import missing

# Not the wrapper of Debian, which becomes another user.
_SERVERS = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))


class PrivateRabbitMQ(EmbeddedServer):
    name: ClassVar[str] = "rabbitmq"
    ready_timeout_s: ClassVar[float] = 120.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        if not _SERVERS:
            missing("there is no RabbitMQ to start", "install rabbitmq-server")
        self._server, self._epmd_port = _SERVERS[-1], free_port()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def _prepare(self) -> None:
        listener = f"listeners.tcp.local = 127.0.0.1:{self.port}\n"
        self._config.write_text(listener, encoding="ascii")

    @property
    def _config(self) -> Path:
        return self.data_dir / "rabbitmq.conf"

    def _command(self) -> list[str | Path]:
        settings = {
            "HOME": self.data_dir,  # the Erlang cookie lies there
            "ERL_EPMD_PORT": self._epmd_port,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"t{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": self._config,
            "RABBITMQ_DIST_PORT": free_port(),
            "RABBITMQ_MNESIA_BASE": self.data_dir / "mnesia",
            "RABBITMQ_LOG_BASE": self.data_dir / "log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.data_dir / "plugins",
            "RABBITMQ_CONF_ENV_FILE": self.data_dir / "none",
        }
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in settings.items()), self._server]

    def _answers(self) -> bool:
        try:
            amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2).connect()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        super().stop()
        epmd = shutil.which("epmd")
        if epmd:  # a daemon of Erlang's; it goes only when told
            environment = {"ERL_EPMD_PORT": str(self._epmd_port), "PATH": "/usr/bin:/bin"}
            subprocess.run([epmd, "-kill"], env=environment, capture_output=True, check=False)
