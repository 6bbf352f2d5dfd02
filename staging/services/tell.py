"""After a commit: publish what happened, announce what is due. Neither can fail the caller."""

from __future__ import annotations

from collections.abc import Sequence

from staging.contracts.status import StatusCode
from staging.domain.operation import Told
from staging.domain.ports import Dispatcher, Notifier


class Teller:
    """Publishes and announces in bounded time. Where both go to one unreachable server, only the first waits for it."""

    def __init__(self, notifier: Notifier, dispatcher: Dispatcher, same_server: bool) -> None:
        self._notifier, self._dispatcher, self._same_server = notifier, dispatcher, same_server

    def committed(self, told: Sequence[Told], *, drop: Sequence[str] = ()) -> None:
        """Publish all of ``told``; announce those that now wait for a worker. The sweeper makes up for any loss.

        ``drop``: keys of Redis that are of no more use. What cannot be deleted just now ends by itself.
        """
        if not told:
            return
        due = [t.event.op_id for t in told if t.event.code == StatusCode.SUBMITTED]
        published = self._notifier.publish(told, raise_flag=bool(due), drop=drop)
        if due and (published.reached or not self._same_server):
            self._dispatcher.announce(due, raised=published.raised)
