"""A TCP proxy between a worker and its database that breaks the line at the worst moment (RELIABILITY B9, B10).

It understands just enough of both protocols to see a COMMIT. It is armed with a text that the client's transaction
carries (a value bound to an INSERT), and trips at the next COMMIT on that very connection, once.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Self

from sqlalchemy import URL, make_url

# PostgreSQL's simple query; MySQL's COM_QUERY.
_COMMITS = (b"Q\x00\x00\x00\x0bCOMMIT\x00", b"\x07\x00\x00\x00\x03COMMIT")
_CHUNK = 65536
_PATIENCE_S = 30.0


class Trip(Enum):
    """How the line breaks."""

    BEFORE_COMMIT = "the server never sees the COMMIT"
    AFTER_COMMIT = "the server commits, the client never hears of it"
    AFTER_COMMIT_THEN_DOWN = "the same, and from that moment the server cannot be reached (until restore)"
    HOLD_COMMIT = "the client's line breaks; the COMMIT reaches the server when the test calls release()"
    HOLD_ANSWER = "the server commits at once, the client hears of it when the test calls release()"
    SWALLOW_COMMIT = "the COMMIT vanishes, the line stays open; the server is rid of the client at release()"
    SWALLOW_ANSWER = "the server commits, its answer vanishes, the line stays open (until release)"
    FREEZE_AFTER_COMMIT = "the server commits, and no byte passes on any line any more (until restore)"


class TcpProxy:
    """Listens on loopback at ``port``."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._armed: tuple[bytes, Trip] | None = None
        self._up = True
        self._flowing = threading.Event()
        self._flowing.set()
        self._released = threading.Event()
        self.tripped = threading.Event()

    def arm(self, marker: str, trip: Trip) -> None:
        """Break the connection on which ``marker`` is sent, at its next COMMIT; ``tripped`` is set then."""
        self.tripped.clear()
        self._released.clear()
        self._armed = (marker.encode(), trip)

    def release(self) -> None:
        """Let go what is held: a COMMIT to the server, an answer to the client, a line that has fallen silent."""
        self._released.set()

    def cut(self) -> None:
        """From now on the database cannot be reached: open connections break, new ones are closed at once."""
        with self._lock:
            self._up = False
            for each in self._open:
                with contextlib.suppress(OSError):  # it may have ended by itself
                    each.shutdown(socket.SHUT_RDWR)

    def restore(self) -> None:
        """The database can be reached again; what was frozen flows."""
        self._up = True
        self._flowing.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed: the test is over
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            with self._lock:
                if not self._up:
                    return
                self._open |= {client, server}
            try:
                with contextlib.suppress(OSError):  # either side may hang up; closing both passes it on
                    self._relay(client, server)
            finally:
                with self._lock:
                    self._open -= {client, server}

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        marked = False
        while True:
            ready, _, _ = select.select([client, server], [], [])
            self._flowing.wait(_PATIENCE_S)
            if server in ready:
                answer = server.recv(_CHUNK)
                if not answer:
                    return
                client.sendall(answer)
            if client in ready:
                data = client.recv(_CHUNK)
                if not data:
                    return
                armed = self._armed
                marked = marked or bool(armed and armed[0] in data)
                if armed and marked and any(commit in data for commit in _COMMITS):
                    self._armed = None
                    if not self._trip(armed[1], data, client, server):
                        return
                else:
                    server.sendall(data)

    def _trip(self, trip: Trip, data: bytes, client: socket.socket, server: socket.socket) -> bool:
        """True if the connection lives on."""
        if trip is Trip.HOLD_COMMIT:
            client.shutdown(socket.SHUT_RDWR)
            self.tripped.set()
            self._released.wait(_PATIENCE_S)
        answer = b""
        if trip not in (Trip.BEFORE_COMMIT, Trip.SWALLOW_COMMIT):
            server.sendall(data)
            answer = server.recv(_CHUNK)  # committed: the answer is here, and goes no further
        if trip is Trip.AFTER_COMMIT_THEN_DOWN:
            self._up = False
        if trip is Trip.FREEZE_AFTER_COMMIT:
            self._flowing.clear()
        self.tripped.set()
        if trip is Trip.FREEZE_AFTER_COMMIT:
            self._flowing.wait(_PATIENCE_S)
            client.sendall(answer)
            return True
        if trip in (Trip.SWALLOW_COMMIT, Trip.SWALLOW_ANSWER):
            self._released.wait(_PATIENCE_S)
        if trip is not Trip.HOLD_ANSWER:
            return False
        self._released.wait(_PATIENCE_S)
        client.sendall(answer)
        return True


@contextmanager
def proxied(url: str | URL) -> Iterator[tuple[TcpProxy, str]]:
    """A proxy to the server of ``url`` (PostgreSQL, MariaDB), and the URL of the same database through it."""
    target = make_url(url)
    plain = (
        {"sslmode": "disable", "gssencmode": "disable"} if target.get_backend_name() == "postgresql" else {}
    )
    with TcpProxy(target.host or "127.0.0.1", target.port or 0) as proxy:
        through = target.set(host="127.0.0.1", port=proxy.port).update_query_dict(plain)
        yield proxy, through.render_as_string(hide_password=False)
