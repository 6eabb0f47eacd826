"""How many batches a worker claims, which of them its slots have room for, and when it leaves."""

import time
from collections.abc import Iterator
from dataclasses import replace

from spsa.errors import TuningError
from spsa.protocol import Claim
from spsa.uci.process import Stopped
from worker.batches.active_batch import ActiveBatch
from worker.batches.scaling import MachineSpeed
from worker.machine import room_objection
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Job, JobStopped, Pool
from worker.settings import Settings


class ActiveBatches(dict[str, ActiveBatch]):
    """The batches that a worker holds, by their claims' ids, the first claimed first.

    A batch waits until the slots have room for its job. One whose run scales times waits until this
    machine's speed is known. That is measured when no slot plays, because then as many engines
    search as in games.
    """

    def __init__(self, pool: Pool, speed: MachineSpeed) -> None:
        super().__init__()
        self._pool = pool
        self._speed = speed

    def add(self, claim: Claim) -> ActiveBatch:
        """A batch without a job; its lease is renewed while its files are fetched."""
        batch = self[claim.claim_id] = ActiveBatch(claim, time.monotonic())
        return batch

    def let_wait(self, batch: ActiveBatch, job: Job) -> None:
        """TuningError where its engines have more threads or memory than this machine can give."""
        slots, limits = len(self._pool), self._pool.limits
        objection = room_objection(job.slots, job.hash_mebibytes, slots, limits)
        if objection is not None:
            raise TuningError(objection)
        batch.job = job

    def withdraw(self) -> None:
        """Withdraw all whose games have not begun; JobStopped follows for each."""
        for batch in self._waiting():
            self._pool.events.put(JobStopped(batch.claim.claim_id))
            batch.job = None
        self._pool.withdraw_queued_jobs()

    def stop(self) -> None:
        """Break off all games."""
        for key in self:
            self._pool.stop(key)

    def wanted(self) -> int:
        """How many batches to claim: one a slot, and a few more while slots play their last pairs.

        So no slot waits for the database, and no claimed batch waits long for a slot. None while
        claimed batches wait for room.
        """
        if self._waiting():
            return 0
        slots, ending = len(self._pool), sum(batch.on_last_pair for batch in self.values())
        busy = sum(batch.slots for batch in self.values())
        return max(0, slots + min(ending, 1 + slots // 4) - busy)

    def submit(self) -> Iterator[tuple[ActiveBatch, TuningError]]:
        """Submit those for which there is room; yields those that this machine cannot play."""
        for batch in self._waiting():
            job = batch.job
            if job is None or not self._has_room(batch, job):
                return
            try:
                scale = self._speed.scale(batch.claim, job)
            except Stopped:
                return  # the worker returns it
            except TuningError as error:
                yield batch, error
            else:
                batch.started, batch.slots, batch.job = time.monotonic(), job.slots, None
                batch.result = replace(batch.result, scale=scale)
                self._pool.submit(job.scaled(scale))

    def _waiting(self) -> list[ActiveBatch]:
        return [batch for batch in self.values() if batch.job is not None]

    def _has_room(self, batch: ActiveBatch, job: Job) -> bool:
        busy = [one.slots for one in self.values() if one.slots]
        if self._speed.is_due(batch.claim):
            return not busy
        # The pool itself keeps jobs of one slot until one is free, and so no slot waits for this
        # thread between two of them.
        return max(*busy, job.slots, 1) == 1 or sum(busy) + job.slots <= len(self._pool)


class Leaving:
    """Whether a worker leaves, and how; times are of the monotonic clock."""

    def __init__(self, settings: Settings, interrupts: Interrupts) -> None:
        self._settings = settings
        self._interrupts = interrupts
        self._drain_ends_at: float | None = None
        self.claimed = 0
        self.no_work_left = False
        self.idle_since = time.monotonic()

    def begins(self) -> bool:
        """Whether the worker was interrupted since the last call for the first time."""
        if not self._interrupts.count or self._drain_ends_at is not None:
            return False
        self._drain_ends_at = time.monotonic() + self._settings.drain
        return True

    def is_interrupted(self) -> bool:
        return self._interrupts.count > 0

    @property
    def has_begun(self) -> bool:
        """Whether the worker claims no more batches."""
        most = self._settings.max_batches
        return self.is_interrupted() or (most is not None and self.claimed >= most)

    @property
    def is_at_once(self) -> bool:
        """Whether active batches are stopped: at the second interrupt, or after the drain time."""
        late = self._drain_ends_at is not None and time.monotonic() >= self._drain_ends_at
        return late or self._interrupts.count > 1

    @property
    def is_over(self) -> bool:
        """Whether a worker that holds nothing ends."""
        limit = self._settings.idle_timeout
        too_long = limit is not None and time.monotonic() - self.idle_since >= limit
        return self.has_begun or self.no_work_left or too_long

    def deadlines(self, *, playing: bool) -> Iterator[float]:
        """When the answers above may change by themselves."""
        if self._drain_ends_at is not None and not self.is_at_once:
            yield self._drain_ends_at
        if self._settings.idle_timeout is not None and not playing:
            yield self.idle_since + self._settings.idle_timeout
