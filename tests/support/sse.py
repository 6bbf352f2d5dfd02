"""A listener as a browser's EventSource is one: reads a stream in the background and keeps what came."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tests.support.waiting import wait_until


@dataclass(frozen=True)
class Event:
    """``at``: when it arrived, by ``time.monotonic``."""

    id: str
    name: str
    data: dict[str, Any]
    at: float

    @property
    def key(self) -> tuple[str, int]:
        """Operation and seq: what makes it this event and no other."""
        return self.data["opId"], self.data["seq"]


@dataclass
class Listener:
    """Connects once; a broken connection ends it (``ended``). ``last_event_id`` resumes."""

    url: str
    token: str
    last_event_id: str = ""
    events: list[Event] = field(default_factory=list)
    comments: list[tuple[str, float]] = field(default_factory=list)
    status: int = 0
    ended: bool = False
    _socket: socket.socket | None = None

    def start(self) -> Self:
        self._client = httpx.Client(timeout=httpx.Timeout(10, read=120))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        wait_until(lambda: self.ended or self.comments, 20, "the stream opens")
        return self

    def _run(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}
        if self.last_event_id:
            headers["Last-Event-ID"] = self.last_event_id
        try:
            with self._client.stream("GET", self.url, headers=headers) as response:
                self.status = response.status_code
                self._socket = response.extensions["network_stream"].get_extra_info("socket")
                self._read(response)
        except httpx.HTTPError:  # the server has gone, or stop() has hung up
            pass
        finally:
            self.ended = True

    def _read(self, response: httpx.Response) -> None:
        parts: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if not line:
                # As the standard says: an id alone counts too, without being an event.
                self.last_event_id = parts.get("id") or self.last_event_id
                if "data" in parts:
                    data = json.loads(parts["data"])
                    event = Event(parts.get("id", ""), parts.get("event", ""), data, time.monotonic())
                    self.events.append(event)
                parts = {}
            elif not name:
                self.comments.append((value.strip(), time.monotonic()))
            else:
                parts[name] = value.removeprefix(" ")

    def wait_for(self, count: int, timeout_s: float = 15) -> list[Event]:
        """The events, once there are at least ``count``."""
        wait_until(lambda: len(self.events) >= count, timeout_s, f"{count} events at {self.url}")
        return self.events

    @property
    def keys(self) -> list[tuple[str, int]]:
        return [event.key for event in self.events]

    def stop(self) -> None:
        """Hang up, as a closed tab does."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the other side did already
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=5)
        self._client.close()
        assert self.ended

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
