"""One round: the operations of one window are staged, held there, struck, and come to their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from migrations import run
from tests.crash_matrix import clients
from tests.crash_matrix.cells import Run
from tests.crash_matrix.stand import Stand
from tests.crash_matrix.world import RENEWED_AFTER_S
from tests.support.waiting import wait_until

_ARRIVE_S = 60.0
_ONE_BY_ONE = {
    ("sqlite", window) for window in ("W3", "W5", "W6")
}  # who is held there holds the one write lock
_SETTLE_S = 0.5
_PATIENCE_S = 10.0
_END_S = 90.0
_AGAIN_S = 1.5
_TERMINAL = 200


class NeverThereError(Exception):
    """An operation did not come to a window in time."""


@dataclass(slots=True)
class Round:
    """``runs``: one for each operation; ``play`` fills in what happened to it."""

    stand: Stand
    runs: list[Run]
    batch: bool = False

    def play(self) -> None:
        window = self.runs[0].window
        player: Callable[[], None] = {
            "W0": self._at_confirm,
            "W1": self._at_confirm,
            "W11": self._at_renewal,
            "W12": self._at_rescue,
            "W13": self._at_cancel,
            "W14": self._at_migration,
        }.get(window, self._in_worker)
        try:
            player()
        except NeverThereError:
            pass  # its run says that nothing has fired; its end is asked for all the same
        finally:
            self.stand.watch.arm()
            self.stand.watch.let_go(set(self.stand.watch.at(window).values()))
        self._wait_for_the_end()

    # --- windows in the worker ----------------------------------------------------------------------------------

    def _in_worker(self) -> None:
        watch, window = self.stand.watch, self.runs[0].window
        if window == "W2":
            watch.arm(window)
            self._confirm()
        else:  # all of them first, before one of them holds what a confirm of the next one needs
            watch.arm("W2*")
            self._confirm()
            self._wait_at("W2")
            watch.arm(window)
        self._strike_all(window)

    def _at_renewal(self) -> None:
        """A batch whose first operation takes so long that the leases of the others are renewed."""
        watch, world = self.stand.watch, self.stand.world
        watch.arm("W5")
        names = ["adjust", *(r.operation for r in self.runs)]
        first, *rest = world.confirm(world.prepare(names))
        self._name(rest)
        batch = {first, *rest}
        try:
            wait_until(lambda: batch & set(watch.at("W5")), _ARRIVE_S, "the batch has begun")
        except AssertionError as error:
            raise NeverThereError("W5") from error
        begun = time.monotonic()
        (holding,) = batch & set(
            watch.at("W5")
        )  # where that is not the first, its own turn comes in another round
        wait_until(lambda: time.monotonic() - begun > RENEWED_AFTER_S, 60, "a third of the lease is over")
        watch.arm("W11")
        watch.let_go([watch.at("W5")[holding]])
        self._strike_all("W11", self._ids - {holding})

    def _at_rescue(self) -> None:
        """Their first workers die right after the claim; who comes to the rescue is struck."""
        stand = self.stand
        stand.watch.arm("W4")
        self._confirm()
        ids = self._wait_at("W4")
        stand.watch.arm("W12")
        stand.kill([stand.watch.at("W4")[i] for i in ids])
        stand.world.lapse(list(ids))
        self._strike_all("W12")

    # --- windows of others ---------------------------------------------------------------------------------------

    def _at_confirm(self) -> None:
        stand, world = self.stand, self.stand.world
        window = self.runs[0].window
        for run_ in self.runs:
            preparation = world.prepare([run_.operation])
            before = set(stand.watch.at(window))
            stand.watch.arm(window)
            told = stand.watch.folder.parent / f"told.{preparation}"
            client = stand.client(
                f"confirm.{preparation}", clients.confirm, world.env, preparation, str(told)
            )
            pids = _new(stand, window, before, client.pid)
            stand.watch.arm()

            def repeated(preparation: str = preparation) -> bool:
                return bool(world.try_confirm(preparation))

            if pids:
                run_.fired = stand.strike_one(client, repeated)
            self._settle_confirm(run_, window, preparation, pids)
            if told.exists() and [run_.op_id] != clients.heard(told):
                run_.problems.append(f"the client was told {clients.heard(told)}")

    def _settle_confirm(self, run_: Run, window: str, preparation: str, held: dict[str, int]) -> None:
        """The person tries again: either nothing had happened, or what had is what comes back."""
        world = self.stand.world
        there = world.of_preparation(preparation)
        died = self.stand.signal != "stop"
        if died and window == "W0" and there:
            run_.problems.append("a row of a confirm that never committed")
        if died and window == "W1" and there != list(held):
            run_.problems.append(f"the committed row is lost: {there}")
        (run_.op_id,) = world.confirm(preparation)
        if there and there != [run_.op_id]:
            run_.problems.append(f"confirmed twice: {there} and {run_.op_id}")

    def _at_cancel(self) -> None:
        """Each waits at W2, published and not claimed; a cancel of it is struck; then its worker goes on."""
        stand, world = self.stand, self.stand.world
        for run_ in self.runs:  # one by one: a worker that goes on takes whatever is due along
            stand.watch.arm("W2*")
            (run_.op_id,) = world.confirm(world.prepare([run_.operation]))
            op_id = run_.op_id
            self._wait_at("W2", {op_id})
            stand.watch.arm("W2*", "W13")
            client = stand.client(f"cancel.{op_id}", clients.cancel, world.env, op_id)
            pids = _new(stand, "W13", set(), client.pid)

            def worked(op_id: str = op_id) -> bool:
                stand.watch.arm()  # the barrier is open
                return self._ended([op_id])

            if pids:
                run_.fired = stand.strike_one(client, worked)
            stand.watch.arm()

    def _at_migration(self) -> None:
        """The operations are claimed; a migration is struck in its middle; another one completes it; they go on."""
        stand, queue = self.stand, run.Tree.QUEUE
        url = stand.world.where.queue_url
        stand.watch.arm("W4")
        self._confirm()
        ids = self._wait_at("W4")
        run.downgrade(url, queue, str(queue.scripts.get_revision(queue.head).down_revision))
        stand.watch.arm("W14")
        mark = stand.watch.folder / "W14.migration"
        mark.unlink(missing_ok=True)
        migration = stand.client(f"migration.{time.monotonic_ns()}", clients.upgrade, url)
        wait_until(mark.exists, _ARRIVE_S, "the migration has changed something")
        stand.watch.arm()
        seen = stand.strike_one(migration, lambda: False)
        if run.upgrade(url, queue).after == queue.head:
            for run_ in self.runs:
                run_.fired = seen
        stand.watch.let_go([stand.watch.at("W4")[i] for i in ids])

    # --- steps --------------------------------------------------------------------------------------------------

    @property
    def _ids(self) -> set[str]:
        return {r.op_id for r in self.runs}

    def _name(self, ids: Sequence[str]) -> None:
        for run_, op_id in zip(self.runs, ids, strict=True):
            run_.op_id = op_id

    def _confirm(self) -> None:
        world = self.stand.world
        if self.batch:
            self._name(world.confirm(world.prepare([r.operation for r in self.runs])))
            return
        prepared = [world.prepare([r.operation]) for r in self.runs]
        self._name([world.confirm(preparation)[0] for preparation in prepared])

    def _wait_at(self, window: str, some: set[str] | None = None) -> set[str]:
        """All operations of the round, or ``some``, are there; their ids."""
        ids, watch = some or self._ids, self.stand.watch
        try:
            wait_until(lambda: ids <= set(watch.at(window)), _ARRIVE_S, f"all come to {window}", poll_s=0.03)
        except AssertionError as error:
            raise NeverThereError(window) from error
        return ids

    def _strike_all(self, window: str, some: set[str] | None = None) -> None:
        """Strike whoever comes to the window with one of the operations (or of ``some``), until each has been struck
        there once."""
        stand, world, missing = self.stand, self.stand.world, some or self._ids
        while missing:
            here = {i: pid for i, pid in self._arrived(window, missing).items() if stand.watch.holds(pid)}
            if not here:
                return  # the runs say that nothing has fired

            def over(here: dict[str, int] = here) -> bool:
                world.lapse(list(here))
                return self._ended(list(here))

            seen = stand.strike(list(here.values()), over)
            for run_ in self.runs:
                if run_.op_id in here:
                    run_.fired = seen
            missing -= here.keys()
            if stand.signal != "stop":
                world.lapse(list(self._ids))

    def _arrived(self, window: str, wanted: set[str]) -> dict[str, int]:
        """Who is held now: all of them, or those that came before the rest had to wait for them."""
        watch = self.stand.watch
        # Where nobody is in another's way all are waited for: a main process's end may take them past the window.
        patience_s = _SETTLE_S if (self.runs[0].place.kind, window) in _ONE_BY_ONE else _PATIENCE_S
        deadline = time.monotonic() + _ARRIVE_S
        here: dict[str, int] = {}
        quiet_since = time.monotonic()
        lapsed = time.monotonic()
        while here.keys() != wanted and time.monotonic() < deadline:
            now = {op_id: pid for op_id, pid in watch.at(window).items() if op_id in wanted}
            if len(now) > len(here):
                here, quiet_since = now, time.monotonic()
            elif here and time.monotonic() - quiet_since > patience_s:
                break
            elif not here and time.monotonic() - lapsed > _AGAIN_S:
                self.stand.world.lapse(list(wanted))
                lapsed = time.monotonic()
            time.sleep(0.03)
        return here

    def _ended(self, ids: Sequence[str] | None = None) -> bool:
        wanted = list(self._ids) if ids is None else ids
        codes = self.stand.world.codes(wanted)
        return all(codes.get(i, 0) >= _TERMINAL for i in wanted)

    def _wait_for_the_end(self) -> None:
        """Everything of this round terminal; leases that somebody lost on the way are set back now and then."""
        since = time.monotonic()

        def ended() -> bool:
            nonlocal since
            if self._ended():
                return True
            if time.monotonic() - since > _AGAIN_S:
                self.stand.world.lapse(list(self._ids))
                since = time.monotonic()
            return False

        wait_until(ended, _END_S, f"all of {self.runs[0].window} come to an end", poll_s=0.08)


def _new(stand: Stand, window: str, before: set[str], pid: int) -> dict[str, int]:
    """Operation → pid of the client, once it is held at the window; empty where it never came."""

    def here() -> dict[str, int]:
        return {i: p for i, p in stand.watch.at(window).items() if i not in before and p == pid}

    try:
        return wait_until(here, _ARRIVE_S, f"the client comes to {window}")
    except AssertionError:
        return {}
