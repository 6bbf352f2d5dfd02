"""What the story is played on: databases, real worker processes, a subscriber, short leases so that nobody
waits long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
import redis

from staging.bootstrap import Services
from staging.embedded.spawn import free_port
from staging.messaging.redis_notifier import user_channel
from staging.settings import Settings
from workers.story.narrator import Narrator

T = TypeVar("T")

# Seconds. Far shorter than the defaults, in the same order (see Settings): the story shows a recovery in a few seconds.
SHORT = {
    "OPSTAGE_LOCK_TIMEOUT_S": "2",
    "OPSTAGE_STATEMENT_TIMEOUT_S": "3",
    "OPSTAGE_DRAIN_BUDGET_S": "1",
    "OPSTAGE_SOFT_TIME_LIMIT_S": "5",
    "OPSTAGE_HARD_TIME_LIMIT_S": "6",
    "OPSTAGE_GRACE_S": "1",
    "OPSTAGE_LEASE_S": "8",
    "OPSTAGE_SWEEP_INTERVAL_S": "1",
    "OPSTAGE_ANNOUNCE_AFTER_S": "1",
    "OPSTAGE_BACKOFF_BASE_S": "0.5",
    "OPSTAGE_WORKER_CONCURRENCY": "1",
}
_READY = " ready."


class Process:
    """A Celery process in a session of its own, its output in a file."""

    def __init__(
        self, name: str, command: list[str], folder: Path, extra: dict[str, str] | None = None
    ) -> None:
        self.log_path = folder / f"{name}.log"
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **(extra or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_ready(self) -> None:
        """Return once the worker takes tasks."""
        wait_for(
            lambda: _READY in self.log or self._process.poll() is not None,
            60,
            f"worker ready: {self.log[-2000:]}",
        )
        if self._process.poll() is not None:
            raise RuntimeError(f"the worker ended: {self.log[-2000:]}")

    def kill9(self) -> None:
        """SIGKILL to the main process and its children, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM; SIGKILL for what is left after ten seconds."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill9()


class Stage:
    """Starts and stops what the story needs."""

    def __init__(self, settings: Settings, services: Services, narrator: Narrator) -> None:
        self.settings, self.services, self.narrator = settings, services, narrator
        self._folder = settings.data_dir
        self._running: list[Process] = []

    def worker(self, name: str, **extra: str) -> Process:
        """A real Celery worker, ready. ``extra``: environment of its own."""
        queues = f"{self.settings.queue_name},{self.settings.sweep_queue_name}"
        command = [sys.executable, "-m", "celery", "-A", "workers.app:app", "worker", "-Q", queues, "-c", "1"]
        command += ["-n", f"{name}@%h", "--without-gossip", "--without-mingle", "-l", "INFO"]
        process = self._start(Process(name, command, self._folder, extra))
        process.wait_ready()
        return process

    def api(self) -> str:
        """The HTTP door with its page, answering; its address."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "staging.api.serve"]
        door = self._start(Process("api", command, self._folder, {"OPSTAGE_API_PORT": str(port)}))

        def answers() -> bool:
            try:
                return httpx.get(f"{url}/healthz", timeout=5).is_success
            except httpx.TransportError:
                return False  # not yet

        wait_for(answers, 60, f"the API answers: {door.log[-2000:]}")
        return url

    def token(self, user: str, kind: str) -> str:
        """A credential of the demo's company for the HTTP door."""
        whose = ["--user", user, "--brands", "B001", "--subsidiary", "S01", "--kind", kind, "--json"]
        command = [sys.executable, "-m", "staging.cli.main", "token", "issue", *whose]
        issued = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        return str(issued["token"])

    def beat(self) -> Process:
        """The sweeper's clock."""
        command = [sys.executable, "-m", "celery", "-A", "workers.app:app", "beat", "--pidfile", ""]
        return self._start(
            Process("beat", [*command, "-s", str(self._folder / "beat-schedule")], self._folder)
        )

    def _start(self, process: Process) -> Process:
        self._running.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self._running):
            process.stop()

    @contextmanager
    def listening(self, brands: str, subsidiary: str, user: str) -> Iterator[list[dict[str, object]]]:
        """Messages of the user's channel, printed as they arrive and kept in the list."""
        heard: list[dict[str, object]] = []
        done = threading.Event()
        client = redis.Redis.from_url(self.settings.redis_url.get_secret_value())
        subscription = client.pubsub()  # type: ignore[no-untyped-call]
        subscription.subscribe(user_channel(brands, subsidiary, user))

        def listen() -> None:
            while not done.is_set():
                message = subscription.get_message(ignore_subscribe_messages=True, timeout=0.1)
                if message is not None:
                    event = json.loads(message["data"])
                    heard.append(event)
                    self.narrator.heard(
                        f"{event['seq']}: {event['status']} {event['code']}  {event['message']}"
                    )

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            done.set()
            thread.join()
            subscription.close()
            client.close()


def wait_for(condition: Callable[[], T], timeout_s: float, what: str) -> T:
    """The first truthy value of ``condition``; RuntimeError with ``what`` after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.05)
    return value
