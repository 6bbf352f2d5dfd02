"""Claim → ledger → apply → classify → write back. The heart of exactly once; DESIGN section 2 is its prose.

Nothing here trusts the message that led to it: ids are hints, the row says everything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from staging import failpoints
from staging.domain.errors import OpstageError, Transient
from staging.domain.operation import Operation, Told
from staging.domain.ports import ErpAdapter
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import claims, due
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from workers.admission import Admission
from workers.attempt import Attempt
from workers.batch import Batch, Costs, Pace, Watcher
from workers.group import GroupRun
from workers.holder import new_token
from workers.outcomes import Done, failed, interrupted, refused
from workers.reconciler import Reconciler
from workers.writeback import LeaseLost, back_off, release, write_back

log = logging.getLogger(__name__)


class Executor:
    """``time_limit``: exception classes by which the pool says that the task's soft limit is over. ``pace``: how many
    to ask it for at once."""

    def __init__(
        self,
        store: QueueStore,
        adapter: ErpAdapter,
        teller: Teller,
        settings: Settings,
        reconciler: Reconciler,
        time_limit: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._store, self._adapter, self._teller, self._settings = store, adapter, teller, settings
        self._reconciler, self._time_limit = reconciler, time_limit
        self._admission = Admission(store, adapter, teller, settings)
        self._attempt, self._costs = Attempt(adapter, settings), Costs()
        # On SQLite the one that runs long has the only write lock: others would gain nothing by going back.
        one_writer = settings.database_url.startswith("sqlite")
        self.pace = Pace(settings.claim_batch, settings.hand_back_after_s)
        self._watcher = Watcher(None if one_writer else settings.hand_back_after_s, self._release)

    def run_batch(self, ids: Sequence[str], over: Callable[[], bool] = lambda: False) -> int:
        """Claim and execute what is due among ``ids``; returns how many were claimed.

        Once ``over`` says so, what has not begun goes back: the pool's time limit is for all of them together.
        """
        failpoints.reached("W2", *ids)
        claimed = self._claim_and_run(ids, over)
        if claimed == len(ids):
            return claimed
        # What is left was taken by others, comes from foreign SQL, or has been tried before.
        with self._store.ask() as connection:
            left = due.due_among(connection, ids)
        foreign = [d.id for d in left if d.seq == 0]
        if foreign:
            self._admission.admit(foreign)
            claimed += self._claim_and_run([d.id for d in left if d.attempt == 0], over)
        # Whoever has been tried before may be what killed its worker: alone, it burns no neighbour's attempts.
        for again in (d.id for d in left if d.attempt > 0):
            claimed += self._claim_and_run([again], over)
        return claimed

    def _claim_and_run(self, ids: Sequence[str], over: Callable[[], bool]) -> int:
        if over():
            return 0
        claimed = self._claim(ids)
        if not claimed:
            return 0
        batch, begun_at = Batch(claimed), time.monotonic()
        claimed_at = begun_at
        self._watcher.watch(batch)
        unbegun: list[Operation] = []
        try:
            while not over() and (operation := batch.take()) is not None:
                unbegun = [operation]
                if time.monotonic() - claimed_at > self._settings.lease_s / 3:
                    self._renew([operation, *batch.waiting()])
                    claimed_at = time.monotonic()
                unbegun = []
                group = batch.take_group(operation, self._fits(operation))
                if len(group) > 1:
                    self._run_group(group, batch)
                else:
                    self._run(operation)
            self._release(batch.take_rest())
        except BaseException:
            self._release([*unbegun, *batch.take_rest()])
            raise
        finally:
            self._watcher.done()
            self.pace.note(batch, time.monotonic() - begun_at)
        return len(claimed)

    def _claim(self, ids: Sequence[str]) -> list[Operation]:
        def work(unit: UnitOfWork) -> list[Operation]:
            claimed, told = claims.claim(unit.connection, ids, new_token(), self._settings.lease_s)
            unit.tell(told)
            failpoints.reached("W3", *(o.id for o in claimed))
            return claimed

        claimed, told = self._store.transact(work)
        self._teller.committed(told)
        failpoints.reached("W4", *(o.id for o in claimed))
        return claimed

    def _renew(self, rest: Sequence[Operation]) -> None:
        token = rest[0].lease_token or ""

        def work(unit: UnitOfWork) -> int:
            failpoints.reached("W11", *(o.id for o in rest))
            return claims.renew(unit.connection, [o.id for o in rest], token, self._settings.lease_s)

        held, _ = self._store.transact(work)
        if held != len(rest):
            log.warning(
                "%d of %d leases were lost; their write-back will be refused", len(rest) - held, len(rest)
            )

    def _release(self, rest: Sequence[Operation]) -> None:
        """Hand back what was claimed but not begun (or let the leases lapse): the task ends early, or runs long."""
        for operation in rest:
            self._settle(operation, lambda unit, o=operation: release(unit, o))

    def _run(self, operation: Operation) -> None:
        """One attempt. Raises only what must end the task: the time limit and the process's own end."""
        in_commit = False
        told: list[Told] = []
        begun_at = time.monotonic()
        try:
            execution = self._attempt.execution(self._attempt.examine(operation))
            with self._adapter.transaction() as tx:
                failpoints.reached("W5", operation.id)
                done = self._attempt.apply(tx, operation, execution)
                failpoints.reached("W6", operation.id)
                if self._settings.shared_database:
                    unit = UnitOfWork(tx.connection)
                    write_back(unit, operation, done)
                    told = unit.collect()
                elif not self._holds(operation):
                    raise LeaseLost(operation.id)
                # From here to the end of the block, which gives the connection back, an exception proves nothing.
                in_commit = True
                tx.commit()
                failpoints.reached("W7", operation.id)
        except LeaseLost:
            log.warning(
                "operation %s: the lease was taken over; attempt %d undone", operation.id, operation.attempt
            )
            return
        except OpstageError as error:
            self._end(operation, refused(operation, error))
            return
        except BaseException as error:
            self._broke(operation, error, in_commit)
            if isinstance(error, self._time_limit) or not isinstance(error, Exception):
                raise
            return
        self._costs.note(operation, time.monotonic() - begun_at)
        failpoints.reached("W8", operation.id)
        if self._settings.shared_database:
            self._teller.committed(told)
        else:
            self._end(operation, done)
        failpoints.reached("W10", operation.id)

    def _fits(self, first: Operation) -> Callable[[Operation], bool]:
        """Which operations may share the transaction of ``first``: the tenant's own, quick ones, for a short while."""
        left_s = self._settings.group_commit_s
        if not self._settings.shared_database or not left_s:
            return lambda _: False

        def fits(operation: Operation) -> bool:
            nonlocal left_s
            left_s -= self._costs.of(operation)
            # Whoever has no attempt left is run alone: see ``_cut_off``.
            untried = operation.attempt == 1 < operation.max_attempts
            return left_s > 0 and operation.tenant == first.tenant and untried

        return fits if fits(first) else lambda _: False

    def _run_group(self, members: Sequence[Operation], batch: Batch) -> None:
        """Several attempts, one commit. Where that fails they run one by one; raises like ``_run``."""
        run = GroupRun(self._adapter, self._attempt, self._costs, members)
        ids = [o.id for o in members]
        try:
            told = run.execute()
        except BaseException as error:
            ends_task = isinstance(error, self._time_limit) or not isinstance(error, Exception)
            if run.in_commit:
                for member in members:
                    self._broke(member, error, in_commit=True)
            elif ends_task:
                self._cut_off(members, run.current, error)
            else:
                log.info("%d operations run one by one (%s)", len(members), type(error).__name__)
                batch.put_back(members)
            if ends_task:
                raise
            return
        failpoints.reached("W8", *ids)
        self._teller.committed(told)
        failpoints.reached("W10", *ids)

    def _cut_off(
        self, members: Sequence[Operation], current: Sequence[Operation], error: BaseException
    ) -> None:
        """The task ends in the middle of a group. One that was being executed has used its time up. Of several nobody
        can say which one did: their attempt counts, so that each is alone next time."""
        under_way = {o.id for o in current}
        self._release([o for o in members if o.id not in under_way])
        if len(current) == 1:
            self._broke(current[0], error, in_commit=False)
            return
        for operation in current:
            self._end(operation, interrupted(operation))

    def _holds(self, operation: Operation) -> bool:
        """Separate databases: is the lease still ours, just before the ERP's commit? What comes between the two is
        caught by the fence and the ledger's row lock."""
        with self._store.read() as connection:
            return claims.is_held(connection, operation.id, operation.lease_token or "")

    def _broke(self, operation: Operation, error: BaseException, in_commit: bool) -> None:
        if in_commit:
            log.warning("operation %s: commit in doubt (%s)", operation.id, type(error).__name__)
            try:
                self._reconciler.resolve(operation)
            except Transient:
                log.warning("operation %s: queue not reachable; the lease will lapse", operation.id)
            return
        log.warning("operation %s: attempt %d failed", operation.id, operation.attempt, exc_info=error)
        if isinstance(error, Exception):
            timed_out = isinstance(error, self._time_limit)
            self._end(operation, failed(operation, error, timed_out=timed_out))
        else:
            # The attempt counts: what ends its process every time must not run for ever.
            self._end(operation, interrupted(operation))

    def _end(self, operation: Operation, done: Done) -> None:
        """Write the end in a queue transaction of its own: after a rollback, or with separate databases."""
        if done.again and operation.attempt < operation.max_attempts:
            self._settle(operation, lambda unit: back_off(unit, operation, done, self._settings))
        else:
            self._settle(operation, lambda unit: write_back(unit, operation, done))

    def _settle(self, operation: Operation, work: object) -> None:
        try:
            _, told = self._store.transact(work)  # type: ignore[arg-type]
        except LeaseLost:
            log.warning("operation %s: the lease was taken over; result not written", operation.id)
        except Transient:
            log.warning("operation %s: queue not reachable; the reconciler will ask the ledger", operation.id)
        else:
            failpoints.reached("W9", operation.id)
            self._teller.committed(told)
