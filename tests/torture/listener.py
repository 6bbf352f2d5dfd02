"""Hears what is published and remembers it: whatever was told must have been committed (I6)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import redis

_PATTERN = "ai:op:id:*"
_PAUSE_S = 0.2
_REPLY_S = 1.0


class Listener(threading.Thread):
    """``heard``: operation, seq and code of every message that came through. Comes back whenever Redis does."""

    def __init__(self, connect: Callable[[float], redis.Redis]) -> None:
        super().__init__(daemon=True)
        self._connect = connect
        self._over = threading.Event()
        self.heard: set[tuple[str, int, int]] = set()

    def run(self) -> None:
        while not self._over.is_set():
            client = self._connect(_REPLY_S)
            try:
                self._listen(client.pubsub(ignore_subscribe_messages=True))  # type: ignore[no-untyped-call]
            except redis.RedisError:
                self._over.wait(_PAUSE_S)  # it will be back
            finally:
                client.close()

    def end(self) -> None:
        self._over.set()
        self.join(10)

    def _listen(self, channel: redis.client.PubSub) -> None:
        with channel:
            channel.psubscribe(_PATTERN)
            while not self._over.is_set():
                message = channel.get_message(timeout=_REPLY_S)
                if message:
                    event = json.loads(message["data"])
                    self.heard.add((event["opId"], event["seq"], event["code"]))
